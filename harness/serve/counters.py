"""The server's own count of what it has done: three of SGLang's Prometheus counters (``/metrics``).

They are kept apart from the fields of an answer, so what a cell's rows say can be held against them: rows that are
lacking, and requests that somebody else sent meanwhile. Names: SGLang 0.5.23, ``observability/metrics_collector.py``.
"""

import re
from dataclasses import asdict, dataclass

_NAMES = {
    "requests": "sglang:num_requests_total",
    "tokens": "sglang:generation_tokens_total",
    "verify_calls": "sglang:spec_verify_calls_total",
}


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Since the server started; a counter that has not moved yet is not published and is 0."""

    requests: int
    tokens: int  # of answers, the prefill's included
    verify_calls: int

    @classmethod
    def parse(cls, text: str) -> "Counters | None":
        """From the text of ``/metrics``; None if it holds no counter of SGLang at all."""
        if "sglang:" not in text:
            return None
        return cls(**{field: _total(text, name) for field, name in _NAMES.items()})

    def since(self, before: "Counters") -> dict[str, int]:
        """What was counted from ``before`` on."""
        old = asdict(before)
        return {name: value - old[name] for name, value in asdict(self).items()}


def _total(text: str, name: str) -> int:
    """Summed over labels."""
    return round(sum(map(float, re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)", text, re.MULTILINE))))
