"""What DFlash2's config.json can have wrong about the selector."""

from collections.abc import Iterator

from drafters.model.finding import Config, Finding, is_count, power_of_two


def head_findings(config: Config) -> Iterator[Finding]:
    nested = config.get("dflash_config", {})
    if not is_count(nested.get("selector_rank")):
        yield Finding(
            "dflash_config.selector_rank",
            "absent: DFlash2DraftModel has no drafter without its selector",
            "write selector_rank and selector_top_k",
        )
    yield from power_of_two("selector_top_k", nested.get("selector_top_k"), 16)
