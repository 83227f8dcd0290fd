"""What Toy's config.json can have wrong."""

from collections.abc import Iterator

from drafters.model.finding import Config, Finding, is_count


def head_findings(config: Config) -> Iterator[Finding]:
    if not is_count(config.get("dflash_config", {}).get("toy_rank")):
        yield Finding("dflash_config.toy_rank", "missing or not a positive integer", "write the trained rank")
