"""Proposals: q is the law that the token was drawn from, given the tokens drafted before it.

What the scores are is tests/parity's; here each slot's law is computed anew behind the drafted tokens, as in training.
"""

import pytest
import torch
from torch import Tensor

from drafters.model.drafter import Drafter
from drafters.model.draw import draw
from drafters.model.proposal import Drafting, Proposal
from tests.drafters.models import H, V, tiny_drafter

pytestmark = pytest.mark.torch
ROWS, TEMPERATURE = 30, 0.8


def drafting(drafter: Drafter, coins_BD: Tensor | None = None, **options: object) -> Drafting:
    generator = torch.Generator().manual_seed(9)
    return Drafting(
        h_BDH=torch.randn(ROWS, drafter.config.drafted, H, generator=generator),
        anchor_B=torch.randint(0, V, (ROWS,), generator=generator),
        before_BH=torch.randn(ROWS, H, generator=generator),
        has_before_B=torch.ones(ROWS, dtype=torch.bool),
        embedding_VH=torch.randn(V, H, generator=generator),
        head_VH=torch.randn(V, H, generator=generator) * 0.3,
        temperature=TEMPERATURE,
        coins_BD=coins_BD,
        **options,  # type: ignore[arg-type]
    )


def sampled(drafter: Drafter) -> tuple[Drafting, Proposal, Tensor]:
    coins_BD = torch.rand(ROWS, 15, generator=torch.Generator().manual_seed(1))
    batch = drafting(drafter, coins_BD)
    with torch.no_grad():
        return batch, drafter.head.propose(batch), coins_BD


@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
@torch.no_grad()
def test_dspark_samples_from_its_corrected_logits(kind: str) -> None:
    drafter = tiny_drafter("dspark", markov_head_type=kind)
    batch, proposal, coins_BD = sampled(drafter)
    previous_BD = torch.cat([batch.anchor_B[:, None], proposal.tokens_BD[:, :-1]], 1)
    markov = drafter.head.markov_head
    logits_BDV = batch.h_BDH @ batch.head_VH.T + markov.markov_w2(markov.codes(previous_BD, batch.h_BDH))
    assert proposal.q_BDV is not None
    torch.testing.assert_close(proposal.q_BDV, (logits_BDV / TEMPERATURE).softmax(-1), rtol=0, atol=1e-5)
    assert torch.equal(draw(proposal.q_BDV, coins_BD), proposal.tokens_BD)


@torch.no_grad()
def test_dflash2_samples_from_its_scores() -> None:
    drafter = tiny_drafter("dflash2")
    batch, proposal, _ = sampled(drafter)
    unary_BDK, ids_BDK = (batch.h_BDH @ batch.head_VH.T).topk(4, -1)
    previous_BD = torch.cat([batch.anchor_B[:, None], proposal.tokens_BD[:, :-1]], 1)
    pairwise_BDK = drafter.head.candidate_selector.pairwise(previous_BD, batch.h_BDH, ids_BDK)
    law_BDK = ((unary_BDK + pairwise_BDK) / TEMPERATURE).softmax(-1)
    assert proposal.q_BDV is not None
    torch.testing.assert_close(proposal.q_BDV.gather(-1, ids_BDK), law_BDK, rtol=0, atol=1e-5)


@pytest.mark.parametrize("arm", ["dflash2", "dspark", "lilicorr", "lilicorr-conv"])
def test_every_token_is_possible_under_its_q(arm: str) -> None:
    _, proposal, _ = sampled(tiny_drafter(arm))
    assert proposal.q_BDV is not None
    torch.testing.assert_close(proposal.q_BDV.sum(-1), torch.ones(ROWS, 15))
    assert (proposal.q_BDV.gather(-1, proposal.tokens_BD[..., None]) > 0).all()


@pytest.mark.parametrize("arm", ["dflash", "domino"])
def test_arms_without_a_sampled_mode_stay_point_masses(arm: str) -> None:
    drafter = tiny_drafter(arm)
    _, proposal, _ = sampled(drafter)
    assert proposal.q_BDV is None
    with torch.no_grad():
        assert torch.equal(proposal.tokens_BD, drafter.head.propose(drafting(drafter)).tokens_BD)


@torch.no_grad()
def test_exact_path_is_another_rule() -> None:
    drafter = tiny_drafter("lilicorr")
    walked, exact = (drafter.head.propose(drafting(drafter, exact_path=flag)) for flag in (False, True))
    assert not torch.equal(walked.tokens_BD, exact.tokens_BD)
