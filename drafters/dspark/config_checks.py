"""What DSpark's config.json can have wrong about its two heads."""

from collections.abc import Callable, Iterator
from typing import Any

from drafters.model.finding import Config, Finding, is_count


def head_findings(config: Config) -> Iterator[Finding]:
    wanted: dict[str, Callable[[Any], bool]] = {
        "markov_rank": is_count,
        "markov_head_type": ("vanilla", "gated", "rnn").__contains__,
        "enable_confidence_head": lambda value: isinstance(value, bool),
        "confidence_head_with_markov": lambda value: isinstance(value, bool),
        "sample_from_anchor": lambda value: value is True,
    }
    for name, fits in wanted.items():
        if not fits(config.get(name)):
            yield Finding(
                name,
                f"{config.get(name, 'absent')!r} at the top level, where alone the head's builder looks",
                "write it at the top level, not inside dflash_config or dspark_config",
            )
