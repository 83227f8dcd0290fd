"""The words every part of sglang-specbench shares: arms, launches, attestations, errors; and the SGLang plugin.

Importing this package loads the standard library only. SGLang and torch are imported under ``serving`` alone.
"""

__version__ = "0.1.0"
SGLANG_VERSION = "0.5.23"  # the one release that the patches, log patterns and checkpoint keys were written for
