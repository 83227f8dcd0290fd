"""What LiLiCorr's config.json can have wrong about its lattice."""

from collections.abc import Iterator

from drafters.model.finding import Config, Finding, power_of_two


def head_findings(config: Config) -> Iterator[Finding]:
    nested = config.get("dflash_config", {})
    names = "candidate_topk hidden_size num_layers num_heads mlp_ratio factor_dim vector_eps logit_scale"
    for name in (f"lilicorr_{name}" for name in names.split()):
        if not isinstance(nested.get(name), int | float):
            yield Finding(
                f"dflash_config.{name}", "absent: SGLang has no default", "write the value it was trained with"
            )
    if nested.get("lilicorr_embedding_scale", 1) != 1:
        yield Finding(
            "dflash_config.lilicorr_embedding_scale",
            "SGLang knows no such key and would compute another function",
            "export the training run, which moves the scale into token_proj.weight",
        )
    yield from power_of_two("lilicorr_candidate_topk", nested.get("lilicorr_candidate_topk"), 16)
    width = nested.get("lilicorr_hidden_size") or config.get("hidden_size", 0)
    if width % (nested.get("lilicorr_num_heads") or 1):
        yield Finding("dflash_config.lilicorr_num_heads", f"does not divide the width {width}", "choose a divisor")
