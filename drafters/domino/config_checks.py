"""What Domino's config.json can have wrong about its correction."""

from collections.abc import Iterator

from drafters.model.finding import Config, Finding, is_count
from sglang_specbench.checkpoint_kind import setting


def head_findings(config: Config) -> Iterator[Finding]:
    if not isinstance(setting(config, "shift_label"), bool):
        yield Finding(
            "dflash_config.shift_label",
            f"{setting(config, 'shift_label')!r}: which row predicts which token must be said",
            "write true (row k predicts token k+1) or false, as trained",
        )
    if setting(config, "pure_draft_prefix_len") != 1:
        yield Finding(
            "dflash_config.pure_draft_prefix_len",
            f"{setting(config, 'pure_draft_prefix_len')!r}: SGLang corrects from the second token on",
            "train with 1 and write 1",
        )
    for name in ("gru_hidden_dim", "emb_dim"):
        nested, top = config.get("dflash_config", {}).get(name), config.get(name)
        if not is_count(setting(config, name)) or (nested and top and nested != top):
            yield Finding(f"dflash_config.{name}", "absent, or unlike its top-level copy", "write it once, nested")
