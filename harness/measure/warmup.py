"""Requests before the measured ones, so that nothing is compiled, captured or paged in under the clock.

SGLang compiles lazily per batch size and length, and its first concurrent batches have been seen a thousand times
slower than later ones. Two waves of c requests with staggered answer lengths pass through every batch size from c
down to 1; their prompts have the lengths of the cell's own, but not its text, so that no table or cache learns it.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.measure.closed_loop import together
from harness.prompts.tokenized import Conversation
from harness.serve.client import Client, Sampling

STEP = 16  # tokens by which answers of a wave differ: at least one block more, whatever is accepted
WAVES = 2


async def warm_up(
    client: Client, conversations: Sequence[Conversation], sampling: Sampling, concurrency: int
) -> dict[str, Any]:
    """Warm the server for a cell; what was sent, for the header. Raises `Failure`."""
    began = time.perf_counter()
    prompts = spread([c.first_ids for c in conversations], WAVES * concurrency)
    tokens = 0
    for wave in range(WAVES):
        calls = []
        for i, ids in enumerate(prompts[wave::WAVES]):
            length = min(STEP * (i + 1), sampling.max_new_tokens)
            tokens += length
            asked = replace(sampling, max_new_tokens=length, ignore_eos=True)
            calls.append(client.generate(ids[::-1], asked, f"warm-{time.perf_counter_ns()}"))
        await together(calls)
    seconds = round(time.perf_counter() - began, 3)
    return {"requests": WAVES * concurrency, "tokens": tokens, "seconds": seconds, "largest_batch": concurrency}


def spread(prompts: Sequence[Sequence[int]], count: int) -> list[Sequence[int]]:
    """``count`` of ``prompts``, evenly over their sorted lengths, the longest included."""
    ordered = sorted(prompts, key=len)
    return [ordered[((i + 1) * len(ordered) - 1) // count] for i in range(count)]
