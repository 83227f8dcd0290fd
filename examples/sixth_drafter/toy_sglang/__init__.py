"""Models that SGLang loads through SGLANG_EXTERNAL_MODEL_PACKAGE: every module here with an ``EntryClass``."""
