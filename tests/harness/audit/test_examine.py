"""The whole audit of one arm on a made-up server: a Markov chain that answers at once.

The honest one samples by the target distribution (false alarm: 1 in 1,000, fixed seed); the others are wrong in one
way each.
"""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from harness.audit import reference
from harness.audit.certificate import Certificate, Seeds
from harness.audit.examine import Examiner
from harness.audit.probe import _raw
from harness.audit.reference import Design, ProbePlace, in_doubt
from harness.audit.target_distribution import Raw, SamplingRule, processed
from harness.schema.failure import Failure
from harness.serve.responses import Answer

V = 12
TABLE = np.random.default_rng(4).dirichlet(np.full(V, 0.25), V)
PROMPTS = {f"p{i}": (i, i + 1) for i in range(6)}
DESIGN = Design(samples=2000, sure=2, greedy_tokens=8)


class Chain:
    """A `Probe` whose target is `TABLE`; ``table`` is what it really samples from."""

    def __init__(self, table=TABLE, seed=0, cut=True):
        self.table, self.cut = table, cut
        self.generator = np.random.default_rng(seed)

    def raw(self, last):
        order = np.argsort(-TABLE[last], kind="stable")
        return Raw(order, np.log(np.maximum(TABLE[last][order], 1e-300)))

    async def conditionals(self, prefixes, head):
        return [self.raw(p[-1]) for p in prefixes]

    async def greedy(self, ids, tokens, head=2):
        out, places = list(ids), []
        for _ in range(tokens):
            places.append(self.raw(out[-1]))
            out.append(int(self.table[out[-1]].argmax()))
        return tuple(out[len(ids) :]), places

    async def answers(self, prompts, request, concurrency):
        return [answer((await self.greedy(ids, request.max_new_tokens))[0]) for ids in prompts]

    async def samples(self, ids, sampling, tokens, count, concurrency):
        return [answer(self.walk(ids[-1], sampling, tokens)) for _ in range(count)]

    def walk(self, last, sampling, tokens):
        out = []
        for _ in range(tokens):
            order = np.argsort(-self.table[last], kind="stable")
            logs = np.log(np.maximum(self.table[last][order], 1e-300))
            p = processed(logs, sampling if self.cut else SamplingRule())
            last = int(order[self.generator.choice(V, p=p / p.sum())])
            out.append(last)
        return tuple(out)


def answer(tokens):
    return Answer(
        text="", output_ids=tokens, prompt_tokens=2, completion_tokens=len(tokens), cached_tokens=0, retractions=0,
        finish="length", finish_message="", first_token_s=None, verify_ct=2, correct_drafts=1, histogram=(1, 1),
        cap_histogram=None,
    )  # fmt: skip


def audited(server):
    known = asyncio.run(reference.ask(Chain(), PROMPTS, V, DESIGN))
    greedy, sampled = asyncio.run(Examiner(known, DESIGN, "float32", 15).examine(server))
    return Certificate(
        target="t", arm="lilicorr", proposal="sampled", target_digest="a", draft_digest="b", weights_date="", date="",
        versions={}, attestation={}, false_alarm=DESIGN.level, prompt_set="s", server=(),
        place=known.near.place, deep=known.deep.place,
        greedy=greedy, sampled=sampled, seeds=Seeds(repeats=True, differs=True),
    )  # fmt: skip


def test_an_honest_server_passes():
    found = audited(Chain(seed=3))
    assert (found.verdict, found.reasons) == ("pass", ())
    assert [g.concurrency for g in found.greedy] == [1, 4]
    assert [(s.setting, s.concurrency, s.samples) for s in found.sampled] == [
        ("T=1", 32, 2000), ("T=1", 1, 250), ("T=1", 4, 250), ("T=0.8 top-k 12", 32, 500), ("T=1 top-p 0.9", 32, 500),
        ("T=1 deep", 32, 500),
    ]  # fmt: skip


def test_a_sharper_server_fails_on_its_samples_only():
    sharper = TABLE**1.3
    found = audited(Chain(sharper / sharper.sum(1, keepdims=True), seed=3))
    assert found.verdict == "fail"
    assert all(not g.divergences for g in found.greedy)


def test_a_server_that_ignores_truncation_fails_on_forbidden_tokens():
    found = audited(Chain(seed=3, cut=False))
    assert any("forbidden" in reason for reason in found.reasons)


def test_another_argmax_fails_at_temperature_zero():
    swapped = TABLE[:, ::-1]
    assert any("T=0" in reason for reason in audited(Chain(swapped, seed=3)).reasons)


def test_what_is_sampled_follows_a_greedy_answer():
    known = asyncio.run(reference.ask(Chain(), PROMPTS, V, DESIGN))
    for spot in (known.near, known.deep):
        answer, _ = known.greedy[spot.place.prompt]
        assert spot.place.ids == PROMPTS[spot.place.prompt] + answer[: spot.place.after]
        assert set(spot.raw) >= {()}
    assert (known.near.place.sure, known.deep.place.sure) == (0, 2)
    assert max(map(len, known.deep.raw)) == 5  # the sixth token is the last that is tested
    assert known.control == {name: ids for name, (ids, _) in known.greedy.items()}
    exact = known.near.distribution(replace(SamplingRule(), top_p=0.9), "float32")
    assert sum(exact.conditionals[()].values()) == pytest.approx(1)


def places(*likeliest):
    return tuple(range(len(likeliest))), [Raw(np.arange(2), np.log([p, 1 - p])) for p in likeliest]


def test_the_place_is_where_the_likeliest_tokens_are_nearest_to_half_the_mass():
    greedy = {
        "sure": places(0.999, 0.99, 0.999),
        "best": places(0.99, 0.99, 0.6, 0.45, 0.99),
        "split": places(0.5, 0.01, 0.999),
    }
    prompts = dict.fromkeys(greedy, (7, 8))
    assert in_doubt(prompts, greedy, sure=0, depth=2) == ProbePlace(prompt="best", after=2, ids=(7, 8, 0, 1), sure=0)


def test_a_deep_place_comes_after_tokens_without_doubt():
    greedy = {"doubt first": places(0.5, 0.5, 0.5, 0.5), "sure first": places(0.3, 0.99, 0.98, 0.6, 0.4)}
    prompts = dict.fromkeys(greedy, (7,))
    assert in_doubt(prompts, greedy, sure=2, depth=2) == ProbePlace(prompt="sure first", after=1, ids=(7, 0), sure=2)


def test_a_target_that_says_nothing_cannot_be_sampled():
    with pytest.raises(Failure, match="choose another --set"):
        in_doubt({"a": (7,)}, {"a": places(0.5)}, sure=0, depth=2)


def test_log_probabilities_are_read_as_the_server_sends_them():
    raw = _raw([[-2.0, 7, None], [-0.2, 3, None], [-2.0, 5, None]])
    assert raw.tokens.tolist() == [3, 7, 5]
    assert raw.logprobs.tolist() == [-0.2, -2.0, -2.0]
