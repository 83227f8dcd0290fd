"""Questions that a measurement never asks of a server: whole distributions, top-2 margins, many short samples.

Speaks ``/generate`` with log-probabilities (SGLang 0.5.23, ``output_top_logprobs``: [log p, token, text] a token,
likeliest first, at temperature 1). Knows nothing of arms or verdicts.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from harness.audit.target_distribution import Prefix, Raw, SamplingRule
from harness.measure.closed_loop import together
from harness.schema.failure import Failure
from harness.serve.client import Client, decoded
from harness.serve.client import Sampling as Request
from harness.serve.fields import MOST, Fields
from harness.serve.responses import Answer

BATCH = 16  # prefixes a request: a whole vocabulary each, so the answers are large


class Probe(Client):
    """A client of the target's server (for distributions and margins) or of an arm's (for samples).

    ``seen`` is called with the number of samples of each batch, as they come.
    """

    def __init__(self, url: str, timeout_s: float, seen: Callable[[int], object]) -> None:
        super().__init__(url, timeout_s)
        self.seen = seen

    async def conditionals(self, prefixes: Sequence[Prefix], head: int) -> list[Raw]:
        """P(next | prefix) for whole token sequences, the ``head`` likeliest tokens of each."""
        found = list[Raw]()
        for start in range(0, len(prefixes), BATCH):
            chunk = [list(p) for p in prefixes[start : start + BATCH]]
            request = Request(temperature=1, max_new_tokens=1, ignore_eos=True)
            for answer in await self._logprobs(chunk, request, head):
                found.append(_places(answer)[0])
        return found

    async def greedy(self, ids: Sequence[int], tokens: int, head: int = 2) -> tuple[Prefix, list[Raw]]:
        """The argmax answer, and the ``head`` likeliest tokens at each of its places."""
        request = Request(temperature=0, max_new_tokens=tokens, ignore_eos=False)
        answer = (await self._logprobs([list(ids)], request, head))[0]
        return Answer.parse(answer).output_ids, _places(answer)

    async def answers(self, prompts: Sequence[Prefix], request: Request, concurrency: int) -> list[Answer]:
        """One answer a prompt, ``concurrency`` in flight, in the order of ``prompts``."""
        found: dict[int, Answer] = {}
        shared = iter(enumerate(prompts))

        async def work() -> None:
            for index, ids in shared:
                found[index] = await self.generate(ids, request, f"audit-{id(found)}-{index}")

        await together([work() for _ in range(concurrency)])
        return [found[index] for index in range(len(prompts))]

    async def samples(
        self, ids: Prefix, sampling: SamplingRule, tokens: int, count: int, concurrency: int
    ) -> list[Answer]:
        """``count`` answers of exactly ``tokens`` tokens to one prompt, ``concurrency`` sent and awaited together."""
        request = asdict(Request(**asdict(sampling), max_new_tokens=tokens, ignore_eos=True))
        found = list[Answer]()
        while len(found) < count:
            prompts = [list(ids)] * min(concurrency, count - len(found))
            answers = [Answer.parse(a) for a in await self._post({"input_ids": prompts, "sampling_params": request})]
            if any(len(a.output_ids) != tokens for a in answers):
                raise Failure("aborted", f"not every answer has the {tokens} tokens that were asked for")
            found += answers
            self.seen(len(prompts))
        return found

    async def _logprobs(self, prompts: list[list[int]], request: Request, head: int) -> list[Any]:
        wanted = {"return_logprob": True, "top_logprobs_num": head}
        return await self._post({"input_ids": prompts, "sampling_params": asdict(request), **wanted})

    async def _post(self, body: dict[str, Any]) -> list[Any]:
        """Several prompts in one ``/generate``; the answers in their order. Raises `Failure`."""
        try:
            async with asyncio.timeout(self.timeout_s):
                status, text = await self._call("POST", "/generate", body)
        except TimeoutError:
            raise Failure("timeout", f"no answer within {self.timeout_s:g} s") from None
        if status != 200:
            raise Failure("invalid", f"/generate: HTTP {status}: {text[:200]}")
        answers = decoded(text, "/generate")
        if not isinstance(answers, list) or len(answers) != len(body["input_ids"]):
            raise Failure("invalid", f"/generate: not one answer to each of {len(body['input_ids'])} prompts")
        return answers


def _places(answer: Any) -> list[Raw]:
    """The likeliest tokens at each place of an answer, one at least. Raises `Failure`."""
    found = Fields("/generate", answer).table("meta_info").held.get("output_top_logprobs")
    if not isinstance(found, list) or not found or not all(map(_is_place, found)):
        raise Failure("invalid", "/generate answered without output_top_logprobs as SGLang 0.5.23 gives them")
    return [_raw(place) for place in found]


def _is_place(place: Any) -> bool:
    return isinstance(place, list) and bool(place) and all(map(_is_token, place))


def _is_token(item: Any) -> bool:
    """[log p, token, text]; the text is not read."""
    whole = isinstance(item, list) and len(item) >= 2
    return whole and isinstance(item[0], int | float) and type(item[1]) is int and 0 <= item[1] <= MOST


def _raw(place: Sequence[Sequence[Any]]) -> Raw:
    """Sorted by probability; ties in the server's order."""
    logprobs = np.array([item[0] for item in place], dtype=np.float64)
    order = np.argsort(-logprobs, kind="stable")
    return Raw(np.array([item[1] for item in place], dtype=np.int64)[order], logprobs[order])
