"""Every head against SGLang 0.5.23's own module with the same weights and inputs."""

from typing import Any

import pytest
import torch
from torch import nn

from drafters.model.conv import GroupedConv
from drafters.model.drafter import Drafter
from drafters.model.lattice import greedy_walk, sampled_walk
from drafters.model.proposal import Drafting
from tests.drafters.models import H, V, randomise, tiny_drafter
from tests.parity.served import served_model

pytestmark = [pytest.mark.torch, pytest.mark.sglang, pytest.mark.usefixtures("sglang_runtime")]
ROWS = 40


def drafting(drafter: Drafter, **changes: Any) -> Drafting:
    generator = torch.Generator().manual_seed(9)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    values: dict[str, Any] = {
        "h_BDH": normal(ROWS, drafter.config.drafted, H),
        "anchor_B": torch.randint(0, V, (ROWS,), generator=generator),
        "before_BH": normal(ROWS, H),
        "has_before_B": torch.arange(ROWS) % 4 > 0,
        "embedding_VH": normal(V, H),
        "head_VH": normal(V, H) * 0.3,
    }
    return Drafting(**{**values, **changes})


def candidates(batch: Drafting, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, log-probabilities over the vocabulary, logits) of the best ``count`` tokens of each slot."""
    logits_BDV = batch.h_BDH @ batch.head_VH.T
    logits_BDK, ids_BDK = logits_BDV.topk(count, -1)
    return ids_BDK, logits_BDK - logits_BDV.logsumexp(-1, keepdim=True), logits_BDK


@pytest.mark.parametrize("arm", ["lilicorr", "lilicorr-conv"])
@torch.no_grad()
def test_lilicorr_scores(arm: str) -> None:
    drafter = tiny_drafter(arm)
    batch, head = drafting(drafter), served_model(drafter).lilicorr
    ids_BDK, logp_BDK, _ = candidates(batch, 4)
    embedded_BDKH = batch.embedding_VH[ids_BDK]
    ours = drafter.head.lilicorr(embedded_BDKH, logp_BDK, batch.h_BDH, batch.before_BH, batch.has_before_B)
    start, pair = head.log_factors(
        *head.score(
            token_embeddings=embedded_BDKH[:, None],
            candidate_log_probs=logp_BDK[:, None],
            pass_hidden=batch.h_BDH[:, None],
            anchor_hidden=batch.before_BH[:, None],
            anchor_valid=batch.has_before_B[:, None],
        )
    )
    torch.testing.assert_close(ours[0], start[:, 0], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours[1], pair[:, 0], rtol=0, atol=1e-5)
    assert float(ours[1].std()) > 0.1  # not all alike


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
@torch.no_grad()
def test_lilicorr_proposal(temperature: float) -> None:
    """Tokens are identical with the same uniforms, and so is q."""
    drafter = tiny_drafter("lilicorr")
    coins_BD = torch.rand(ROWS, 15, generator=torch.Generator().manual_seed(4)) if temperature else None
    batch, head = drafting(drafter, temperature=temperature, coins_BD=coins_BD), served_model(drafter).lilicorr
    ids_BDK, logp_BDK, _ = candidates(batch, 4)
    tokens_BD, q_BDK = head.select_with_proposal(
        token_embeddings=batch.embedding_VH[ids_BDK],
        candidate_tokens=ids_BDK,
        candidate_log_probs=logp_BDK,
        pass_hidden=batch.h_BDH,
        anchor_hidden=batch.before_BH,
        anchor_valid=batch.has_before_B,
        uniforms=torch.zeros(ROWS, 15) if coins_BD is None else coins_BD,
        temperatures=torch.full((ROWS,), max(temperature, 1e-5)),
        greedy_mask=torch.full((ROWS,), temperature == 0),
    )
    proposal = drafter.head.propose(batch)
    assert torch.equal(proposal.tokens_BD, tokens_BD)
    if proposal.q_BDV is not None:
        torch.testing.assert_close(proposal.q_BDV.gather(-1, ids_BDK), q_BDK, rtol=0, atol=1e-5)
        torch.testing.assert_close(proposal.q_BDV.sum(-1), torch.ones(ROWS, 15))


@torch.no_grad()
def test_grouped_conv_is_exact() -> None:
    from sglang.srt.models.dflash import DFlashGroupedConv

    ours, theirs = GroupedConv(H, 3, 8), DFlashGroupedConv(H, block_size=16, taps=3, group_size=8)
    randomise(ours, 1)
    theirs.load_state_dict(ours.state_dict())
    x_NRH = torch.randn(3, 16, H, generator=torch.Generator().manual_seed(1))
    before, after = ours.prepare(x_NRH)
    before_served, after_served = theirs.prepare(x_NRH.flatten(0, 1))
    assert torch.equal(before.flatten(0, 1), before_served)
    assert torch.equal(
        ours.finish(x_NRH * 2, after).flatten(0, 1), theirs.finish(x_NRH.flatten(0, 1) * 2, after_served)
    )


@torch.no_grad()
def test_dflash2_lattice_and_walks() -> None:
    drafter = tiny_drafter("dflash2")
    batch, selector = drafting(drafter), served_model(drafter).candidate_selector
    ids_BDK, _, unary_BDK = candidates(batch, 4)
    start_BK, pair_BSPC = drafter.head.lattice(unary_BDK, ids_BDK, batch.h_BDH, batch.anchor_B)
    scores_BDPC = selector.build_lattice(
        candidate_ids=ids_BDK, unary_logits=unary_BDK, hidden_states=batch.h_BDH, anchor_token_ids=batch.anchor_B
    )
    torch.testing.assert_close(start_BK, scores_BDPC[:, 0, 0], rtol=0, atol=1e-6)
    torch.testing.assert_close(pair_BSPC, scores_BDPC[:, 1:], rtol=0, atol=1e-6)
    coins_BD = torch.rand(ROWS, 15, generator=torch.Generator().manual_seed(4))
    for greedy in (True, False):
        tokens_BD, q_BDK = selector.sample_path(
            candidate_ids=ids_BDK,
            scores=scores_BDPC,
            uniforms=coins_BD,
            temperatures=torch.full((ROWS,), 0.8),
            greedy_mask=torch.full((ROWS,), greedy),
        )
        path_BD = greedy_walk(start_BK, pair_BSPC)
        if not greedy:
            path_BD, ours_BDK = sampled_walk(start_BK, pair_BSPC, 0.8, coins_BD)
            torch.testing.assert_close(ours_BDK, q_BDK, rtol=0, atol=1e-6)
        assert torch.equal(ids_BDK.gather(-1, path_BD[..., None])[..., 0], tokens_BD)


@pytest.mark.parametrize("shift_label", [True, False])
@pytest.mark.parametrize("pool", [0, 20, V])
@torch.no_grad()
def test_domino_rollout(shift_label: bool, pool: int) -> None:
    from sglang.srt.speculative.domino_utils import domino_greedy_rollout

    drafter = tiny_drafter("domino", shift_label=shift_label)
    config = drafter.config
    h_BRH = torch.randn(ROWS, config.rows, H, generator=torch.Generator().manual_seed(3))
    batch = drafting(drafter, h_BDH=h_BRH[:, config.first_row :][:, : config.drafted], pool=pool)
    served = served_model(drafter)
    embedding = nn.Embedding.from_pretrained(batch.embedding_VH)
    tokens_BD = domino_greedy_rollout(
        draft_hidden=h_BRH,
        bonus_tokens=batch.anchor_B,
        target_embedding=embedding,
        lm_head_weight=batch.head_VH,
        prefix_gru=served.prefix_gru,
        embed_proj=served.embed_proj,
        vocab_size=V,
        shift_label=shift_label,
        candidate_pool_size=pool,
        in_cuda_graph=False,
    )
    assert torch.equal(drafter.head.propose(batch).tokens_BD, tokens_BD)
    base_BD = (batch.h_BDH @ batch.head_VH.T).argmax(-1)
    assert not torch.equal(base_BD, tokens_BD)  # the correction decides some slots


@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
@torch.no_grad()
def test_dspark_bias(kind: str) -> None:
    """The bias of every slot behind given tokens; and the greedy draft, slot by slot through SGLang's head."""
    drafter = tiny_drafter("dspark", markov_head_type=kind)
    batch, served = drafting(drafter), served_model(drafter).markov_head
    previous_BD = torch.randint(0, V, (ROWS, 15), generator=torch.Generator().manual_seed(6))
    markov = drafter.head.markov_head
    bias_BDV = markov.markov_w2(markov.codes(previous_BD, batch.h_BDH))
    base_BDV, drafted = batch.h_BDH @ batch.head_VH.T, []
    state, draft_state = (served.init_state(batch.h_BDH[:, 0]) for _ in range(2))
    token_B = batch.anchor_B
    for slot in range(15):
        h_BH = batch.h_BDH[:, slot]
        bias_BV, state = served.step_bias(previous_BD[:, slot], hidden_states=h_BH, state=state)
        torch.testing.assert_close(bias_BDV[:, slot], bias_BV, rtol=0, atol=1e-5)
        bias_BV, draft_state = served.step_bias(token_B, hidden_states=h_BH, state=draft_state)
        token_B = (base_BDV[:, slot] + bias_BV).argmax(-1)
        drafted.append(token_B)
    assert torch.equal(drafter.head.propose(batch).tokens_BD, torch.stack(drafted, 1))


@pytest.mark.parametrize("with_markov", [True, False])
@torch.no_grad()
def test_dspark_confidence(with_markov: bool) -> None:
    from sglang.srt.models.dspark import DSparkConfidenceHead

    drafter = tiny_drafter("dspark", confidence_head_with_markov=with_markov)
    batch, markov = drafting(drafter), served_model(drafter).markov_head
    head = DSparkConfidenceHead(hidden_size=H, markov_rank=6, with_markov=with_markov)
    head.load_state_dict(drafter.head.confidence_head.state_dict())
    tokens_BD = torch.randint(0, V, (ROWS, 15), generator=torch.Generator().manual_seed(6))
    rate_BD, logit_BD = head.predict(
        batch.h_BDH, anchor_tokens=batch.anchor_B, draft_tokens=tokens_BD, markov_head=markov
    )
    previous_BD = torch.cat([batch.anchor_B[:, None], tokens_BD[:, :-1]], 1)
    ours_BD = drafter.head.confidence(batch.h_BDH, previous_BD)
    torch.testing.assert_close(ours_BD, logit_BD, rtol=0, atol=1e-5)
    torch.testing.assert_close(ours_BD.sigmoid(), rate_BD, rtol=0, atol=1e-5)
