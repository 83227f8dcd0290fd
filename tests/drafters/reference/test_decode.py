"""The reference loop: exact at temperature 0 for every arm and rule, audited at 1, and its counts are SGLang's."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import pytest
import torch

from drafters.reference.decode import Decoded, Rule, decode
from drafters.reference.target import Target
from harness.audit.chisquare import holm, joint_test, likeliest_test, position_test
from harness.audit.rounding import ROUNDING
from harness.audit.target_distribution import Prefix, Raw, SamplingRule, TargetDistribution, grow, target_distribution
from tests.drafters.models import MODELS, tiny_drafter, tiny_target
from tests.harness.audit.faulty import resample_from_p

pytestmark = pytest.mark.torch
PROMPT = [3, 50, 11, 8, 2, 60]
PLAIN = SamplingRule()
SAMPLES, TOKENS = 400, 3
Kind = Literal["argmax", "sampled"]


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def greedy(target: Target, tokens: int) -> list[int]:
    """The target alone, reading everything anew for each token."""
    ids = list(PROMPT)
    for _ in range(tokens):
        ids.append(int(target.model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(PROMPT) :]


@pytest.mark.parametrize("arm", MODELS)
def test_greedy_output_is_the_targets(target: Target, arm: str) -> None:
    decoded = decode(target, tiny_drafter(arm), PROMPT, 40, Rule())
    assert decoded.output_ids == greedy(target, 40)
    assert 0 < sum(decoded.accepted) < 15 * len(decoded.accepted)  # both the accept and the reject path ran


@pytest.mark.parametrize(
    ("arm", "rule", "model"),
    [
        ("lilicorr", Rule(exact_path=True), {}),
        ("domino", Rule(pool=9), {}),
        ("domino", Rule(), {"shift_label": False}),
        ("dspark", Rule(), {"markov_head_type": "gated"}),
        ("dspark", Rule(), {"markov_head_type": "rnn"}),
    ],
)
def test_greedy_output_under_other_rules(target: Target, arm: str, rule: Rule, model: dict[str, object]) -> None:
    assert decode(target, tiny_drafter(arm, **model), PROMPT, 30, rule).output_ids == greedy(target, 30)


def test_counts_of_the_last_block_are_not_cut(target: Target) -> None:
    whole = decode(target, tiny_drafter("lilicorr"), PROMPT, 40, Rule())
    end = whole.output_ids[17]
    first = whole.output_ids.index(end)
    cut = decode(target, tiny_drafter("lilicorr"), PROMPT, 40, Rule(), eos_ids=[end])
    assert cut.output_ids == whole.output_ids[: first + 1]
    assert cut.accepted == whole.accepted[: len(cut.accepted)]
    for decoded in (whole, cut):
        surplus = 1 + sum(decoded.accepted) + len(decoded.accepted) - len(decoded.output_ids)
        assert 0 <= surplus < 16


def test_one_token_needs_no_block(target: Target) -> None:
    assert decode(target, tiny_drafter("dflash"), PROMPT, 1, Rule()) == Decoded(greedy(target, 1), [])


@pytest.fixture(scope="module")
def hesitant() -> tuple[Target, TargetDistribution]:
    """A target with six favoured tokens, and its distribution of the first three after the prompt."""
    target = tiny_target(tied_to=6)

    async def ask(prefixes: Sequence[Prefix]) -> list[Raw]:
        with torch.no_grad():
            logits_PV = target.model(torch.tensor([[*PROMPT, *p] for p in prefixes])).logits[:, -1].double()
        ranked = logits_PV.log_softmax(-1).sort(dim=-1, descending=True)
        return [Raw(t.numpy(), p.numpy()) for t, p in zip(ranked.indices, ranked.values, strict=True)]

    return target, target_distribution(asyncio.run(grow(ask, [PLAIN], TOKENS, 2 / SAMPLES)), PLAIN, ROUNDING["float32"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arm", "proposal"),
    [
        ("dflash", "argmax"),
        ("dflash2", "sampled"),
        ("domino", "argmax"),
        ("dspark", "argmax"),
        ("dspark", "sampled"),
        ("lilicorr", "argmax"),
        ("lilicorr", "sampled"),
    ],
)
def test_sampled_output_passes_the_audit(hesitant: tuple[Target, TargetDistribution], arm: str, proposal: Kind) -> None:
    """The tests of `specbench audit` on the loop. Odds that an exact loop fails: 1 in 100 (Holm); the seed is fixed."""
    assert audited(hesitant, arm, proposal) > 0.01


@pytest.mark.slow
def test_a_loop_that_redraws_from_p_fails_the_audit(
    hesitant: tuple[Target, TargetDistribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drafters.reference.decode.speculative_round", resample_from_p)
    assert audited(hesitant, "dspark", "sampled") < 0.01


def audited(hesitant: tuple[Target, TargetDistribution], arm: str, proposal: Kind) -> float:
    """The smallest p of `SAMPLES` runs, after Holm's correction."""
    target, exact = hesitant
    drafter, generator = tiny_drafter(arm), torch.Generator().manual_seed(5)
    rule = Rule(temperature=1.0, proposal=proposal)
    samples = [
        tuple(decode(target, drafter, PROMPT, TOKENS, rule, generator=generator).output_ids) for _ in range(SAMPLES)
    ]
    tests = [position_test(f"token {place + 1}", samples, exact, place) for place in range(TOKENS)]
    tests += [joint_test("tokens 1-2", samples, exact, 2), likeliest_test("likeliest", samples, exact, 1)]
    assert min(test.samples for test in tests) > SAMPLES / 4  # the distribution knows most of what was drawn
    return min(holm(tests))
