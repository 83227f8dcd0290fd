"""The entry point that SGLang calls in every process of a server (group ``sglang.srt.plugins``, name ``specbench``).

Does nothing unless ``SPECBENCH_CONFIG`` is set, so an ordinary SGLang server beside this package is untouched. SGLang
logs and swallows what a plugin raises; therefore nothing here is relied upon: a failure leaves the server without an
attestation (or, on a CPU, refused by SGLang's own device gates), and such a server is never measured.
"""

import os

from sglang_specbench.launch import CONFIG_ENV, ServerConfig


def register() -> None:
    """Patch this process for the launch described in ``SPECBENCH_CONFIG``; cheap where it is not a scheduler."""
    text = os.environ.get(CONFIG_ENV)
    if text:
        from sglang_specbench.serving.bootstrap import prepare_process

        prepare_process(ServerConfig.from_json(text))
