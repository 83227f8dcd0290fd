"""Were the graphs captured that the launch asked for, and is the head in them: told by what stands after the capture.

SGLang prints "folded into the draft cuda graph" before it captures anything. Proof are the sizes that the graph
runners hold (attested), the line that ends each capture, and the count of steps outside any graph since then
(``serving.eager_steps``).
Pure; the texts are those of SGLang 0.5.23.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sglang_specbench.arms import Arm
from sglang_specbench.launch import graph_sizes

SIZES_FLAG = "--cuda-graph-bs-decode"
END = r"Capture {name} CUDA graph end\. bs=\[([\d, ]*)\]"


def asked_sizes(capacity: int, extra: Sequence[str] = ()) -> tuple[int, ...]:
    """Batch sizes to capture for ``capacity`` requests in flight, unless the sweep's own arguments name them."""
    if SIZES_FLAG not in extra:
        return graph_sizes(capacity)
    sizes = []
    last = len(extra) - 1 - list(reversed(extra)).index(SIZES_FLAG)
    for text in extra[last + 1 :]:
        if not text.isdigit():
            break
        sizes.append(int(text))
    return tuple(sorted(set(sizes)))


def capture_faults(seen: Mapping[str, Any] | None, arm: Arm, *, sizes: Sequence[int], log: str | None) -> list[str]:
    """Why the graphs of a server with attestation ``seen`` are not those asked for; empty when they are.

    ``log`` is None where it cannot be read. A CPU server has no graphs.
    """
    if not seen or seen.get("device") != "cuda":
        return []
    wanted: dict[str, Any] = {"graph_sizes": list(sizes)}
    if arm.head:
        wanted |= {"draft_graph_sizes": list(sizes), "head_captured": True}
    said = {key: list(value) if isinstance(value := seen.get(key), tuple) else value for key in wanted}
    unlike = [key for key in wanted if said[key] != wanted[key]]
    found = [f"{key}: wanted {wanted[key]!r}, server says {said[key]!r}" for key in unlike]
    return found if log is None else found + _log_faults(arm, list(sizes), log)


def _log_faults(arm: Arm, sizes: list[int], log: str) -> list[str]:
    names = ["target verify" if arm.algorithm else "target decode", *(["draft verify"] if arm.head else [])]
    found = []
    for name in names:
        ends = re.findall(END.format(name=name), log)
        captured = [sorted(int(size) for size in text.split(",") if size.strip()) for text in ends]
        if sizes not in captured:
            said = f"for {captured[-1]}" if captured else "never"
            found.append(f"the log must say that the {name} capture ended for {sizes}; it ended {said}")
    return found
