"""The reference loop: exact at temperature 0 for every arm and rule, and its counts are SGLang's."""

from collections.abc import Iterator

import pytest
import torch

from drafters.decode import Decoded, Rule, committed_blocks, decode
from drafters.target import Cursor, Target
from tests.drafters.models import MODELS, tiny_drafter, tiny_target

pytestmark = pytest.mark.torch
PROMPT = [3, 50, 11, 8, 2, 60]


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


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "proposal"), [("lilicorr", "argmax"), ("lilicorr", "sampled"), ("dspark", "sampled")])
def test_sampled_output_follows_the_target(arm: str, proposal: str) -> None:
    """First two tokens of 400 runs against the target's own law of pairs.

    A chi-square of k cells is below k + 5 sqrt(2k) + 10 with odds of a false alarm under 1e-5 (k <= 60).
    """
    target = tiny_target(tied_to=6)
    drafter, generator = tiny_drafter(arm), torch.Generator().manual_seed(5)
    law_VV = pair_law(target)
    counts_VV = torch.zeros_like(law_VV)
    for _ in range(400):
        tokens = first_two(
            committed_blocks(target, drafter, PROMPT, Rule(temperature=1.0, proposal=proposal), generator)
        )  # type: ignore[arg-type]
        counts_VV[tokens[0], tokens[1]] += 1
    assert chi_square(counts_VV.flatten(), 400 * law_VV.flatten()) < 0


def pair_law(target: Target) -> torch.Tensor:
    cursor = Cursor(target, (0,))
    first_V = cursor.read(torch.tensor(PROMPT))[0][-1].double().softmax(-1)
    rows = []
    for token in range(len(first_V)):
        cursor.rewind(len(PROMPT))
        rows.append(first_V[token] * cursor.read(torch.tensor([token]))[0][-1].double().softmax(-1))
    return torch.stack(rows)


def first_two(blocks: Iterator[list[int]]) -> list[int]:
    tokens: list[int] = []
    while len(tokens) < 2:
        tokens += next(blocks)
    return tokens[:2]


def chi_square(seen: torch.Tensor, expected: torch.Tensor) -> float:
    """Surplus of the statistic over its alarm line; cells below 5 expected are merged into one."""
    rare = expected < 5
    seen = torch.cat([seen[~rare], seen[rare].sum()[None]])
    expected = torch.cat([expected[~rare], expected[rare].sum()[None]])
    cells = len(seen) - 1
    return float(((seen - expected) ** 2 / expected).sum()) - (cells + 5 * (2 * cells) ** 0.5 + 10)
