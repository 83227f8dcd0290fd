"""Every arm's loss against its equations, written out slowly in float64, one block and slot at a time.

Only the hidden states come from the drafter (their parity with SGLang is tests/parity's). Also what each loss may not
train, and that shares of a split batch add up to the loss of the whole.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from drafters.domino.loss import base_weight
from drafters.model import crossentropy
from drafters.model.blocks import TrainingBatch
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss
from drafters.model.registry import DRAFTERS, package
from tests.drafters.models import H, tiny_batch, tiny_drafter

pytestmark = pytest.mark.torch
BETA = 7.0


@dataclass
class Slot:
    """One slot of a kept block, everything in float64."""

    block: int
    index: int
    h: Tensor
    logits: Tensor
    gold: int
    supervised: bool
    previous: int
    teacher: Tensor
    sequence: int
    anchor: int


def slots(drafter: Drafter, batch: TrainingBatch) -> Iterator[list[Slot]]:
    """The kept blocks, each a list of its slots; labels beyond the sequence are unsupervised."""
    h_MDH, _ = drafter(batch)
    block = 0
    for sequence in range(len(batch.tokens_BS)):
        for anchor, keep in zip(batch.anchor_BN[sequence].tolist(), batch.keep_BN[sequence].tolist(), strict=True):
            if keep:
                yield [slot(batch, h_MDH[block, s], block, s, sequence, anchor) for s in range(h_MDH.shape[1])]
                block += 1


def slot(batch: TrainingBatch, h: Tensor, block: int, index: int, sequence: int, anchor: int) -> Slot:
    place, length = anchor + 1 + index, batch.tokens_BS.shape[1]
    inside = place < length
    return Slot(
        block=block,
        index=index,
        h=h.double(),
        logits=h.double() @ batch.head_VH.double().T,
        gold=int(batch.tokens_BS[sequence, min(place, length - 1)]),
        supervised=inside and bool(batch.loss_BS[sequence, place]),
        previous=int(batch.tokens_BS[sequence, min(place - 1, length - 1)]),
        teacher=batch.final_BSH[sequence, min(place - 1, length - 1)].double() @ batch.head_VH.double().T,
        sequence=sequence,
        anchor=anchor,
    )


def nll(logits: Tensor, gold: int) -> Tensor:
    return -(logits[gold] - torch.logsumexp(logits, 0))


def mean(pairs: list[tuple[float, Tensor]]) -> float:
    return float((sum(w * value for w, value in pairs) / sum(w for w, _ in pairs)).detach())


def weight(s: Slot) -> float:
    return math.exp(-s.index / BETA) * s.supervised


def dflash(drafter: Drafter, batch: TrainingBatch) -> dict[str, float]:
    terms = [(weight(s), nll(s.logits, s.gold)) for block in slots(drafter, batch) for s in block]
    return {"dflash": mean(terms)}


def dflash2(drafter: Drafter, batch: TrainingBatch) -> dict[str, float]:
    selector = drafter.head.candidate_selector
    A, B = selector.predecessor_codebook.double(), selector.successor_codebook.double()
    W = selector.hidden_projection.weight.double()
    terms = []
    for s in (s for block in slots(drafter, batch) for s in block):
        ids = s.logits.topk(drafter.head.candidates).indices.tolist()
        if s.gold not in ids:
            ids[-1] = s.gold
        scores = torch.stack([s.logits[c] + (A[s.previous] * (W @ s.h) * B[c]).sum() for c in ids])
        terms.append((weight(s), nll(scores, ids.index(s.gold))))
    return {**dflash(drafter, batch), "selector": mean(terms)}


def domino(drafter: Drafter, batch: TrainingBatch) -> dict[str, float]:
    gru, first, last = drafter.head.prefix_gru, drafter.head.embed_proj[0], drafter.head.embed_proj[2]
    W_ih, W_hh = gru.weight_ih_l0.double(), gru.weight_hh_l0.double()
    base, final = [], []
    for block in slots(drafter, batch):
        g = torch.zeros(gru.hidden_size).double()
        for s in block:
            i_r, i_z, i_n = (W_ih @ batch.embedding_VH[s.previous].double()).chunk(3)
            h_r, h_z, h_n = (W_hh @ g).chunk(3)
            z = torch.sigmoid(i_z + h_z)
            g = (1 - z) * torch.tanh(i_n + torch.sigmoid(i_r + h_r) * h_n) + z * g
            correction = last.weight.double() @ F.silu(first.weight.double() @ torch.cat([s.h, g]))
            logits = s.logits + correction if s.index else s.logits
            base.append((weight(s), nll(s.logits, s.gold)))
            final.append((weight(s), nll(logits, s.gold)))
    return {"final": mean(final), "base": mean(base)}


def dspark(drafter: Drafter, batch: TrainingBatch) -> dict[str, float]:
    markov, proj = drafter.head.markov_head, drafter.head.confidence_head.proj
    W1, W2 = markov.markov_w1.weight.double(), markov.markov_w2.weight.double()
    parts: dict[str, list[tuple[float, Tensor]]] = {"cross_entropy": [], "distance": [], "confidence": []}
    for block in slots(drafter, batch):
        alive = True
        for s in block:
            alive = alive and s.supervised
            w = math.exp(-s.index / BETA) * alive
            logits = s.logits + W2 @ W1[s.previous]
            distance = (logits.softmax(0) - s.teacher.softmax(0)).abs().sum()
            rate = 1 - distance / 2
            confidence = torch.sigmoid(
                proj.weight.double()[0] @ torch.cat([s.h, W1[s.previous]]) + proj.bias.double()[0]
            )
            parts["cross_entropy"].append((w, nll(logits, s.gold)))
            parts["distance"].append((w, distance))
            parts["confidence"].append((w, -(rate * confidence.log() + (1 - rate) * (1 - confidence).log())))
    return {name: mean(pairs) for name, pairs in parts.items()}


def lilicorr(drafter: Drafter, batch: TrainingBatch) -> dict[str, float]:
    _, context_BSH = drafter(batch)
    ce, penalty = [], []
    for block in slots(drafter, batch):
        ids = [s.logits.topk(4).indices.tolist() for s in block]
        logp = torch.stack([s.logits.log_softmax(0)[c] for s, c in zip(block, ids, strict=True)])
        a = block[0].anchor
        start, pair = drafter.head.lilicorr(
            batch.embedding_VH[torch.tensor(ids)][None],
            logp[None].float(),
            torch.stack([s.h for s in block])[None].float(),
            context_BSH[block[0].sequence, max(a - 1, 0)][None],
            torch.tensor([a > 0]),
        )
        if not all(s.supervised for s in block):
            continue
        for s in block:
            if s.gold not in ids[s.index]:
                break
            row = start[0] if s.index == 0 else pair[0, s.index - 1, ids[s.index - 1].index(s.previous)]
            scores, k = row.double(), ids[s.index].index(s.gold)
            ce.append(nll(scores, k))
            gaps = torch.stack([(s.teacher[s.gold] - s.teacher[c]).clamp_min(0) for c in ids[s.index]])
            penalty.append((scores.softmax(0) * gaps).sum())
    lattice, distractor = torch.stack(ce).sum().detach(), torch.stack(penalty).sum().detach()
    return {**dflash(drafter, batch), "lattice": float(lattice) / len(ce), "distractor": float(distractor) / len(ce)}


SLOW: dict[str, Callable[[Drafter, TrainingBatch], dict[str, float]]] = {
    "dflash": dflash,
    "dflash2": dflash2,
    "dflash2-noconv": dflash2,
    "domino": domino,
    "dspark": dspark,
    "lilicorr": lilicorr,
    "lilicorr-conv": lilicorr,
}


def run(drafter: Drafter, batch: TrainingBatch, **weights: float) -> Loss:
    module = package(drafter.config.arm)
    loss: Loss = module.loss(drafter, batch, module.Weights(**weights))
    return loss


def drafter_and_batch(arm: str, **model: object) -> tuple[Drafter, TrainingBatch]:
    """Labels are made from the drafter's own top candidates, so that prefixes are neither empty nor full."""
    drafter = tiny_drafter(arm, **model)
    batch = tiny_batch(len(drafter.config.target_layer_ids))
    with torch.no_grad():
        for block in list(slots(drafter, batch)):
            for s in block:
                place = s.anchor + 1 + s.index
                if place < batch.tokens_BS.shape[1] and s.index % 5 != 4:
                    batch.tokens_BS[s.sequence, place] = int(s.logits.topk(3).indices[s.index % 3])
    return drafter, batch


@pytest.mark.parametrize("arm", DRAFTERS)
def test_terms_equal_the_equations(arm: str) -> None:
    drafter, batch = drafter_and_batch(arm)
    loss, slow = run(drafter, batch), SLOW[arm](drafter, batch)
    assert {name: float(value) for name, value in loss.parts.items()} == pytest.approx(slow, rel=2e-5)
    assert float(loss.total.detach()) == pytest.approx(sum(loss.weights[n] * slow[n] for n in slow), rel=2e-5)
    assert all(slow.values())


def test_domino_without_shift() -> None:
    drafter, batch = drafter_and_batch("domino", shift_label=False)
    parts = {name: float(value) for name, value in run(drafter, batch).parts.items()}
    assert parts == pytest.approx(domino(drafter, batch), rel=2e-5)


def test_published_weights() -> None:
    """Eq. (6) of LiLiCorr's paper, DeepSpec's 0.1 / 0.9 / 1, and Domino's fading base loss."""
    shares = {arm: run(*drafter_and_batch(arm)).weights for arm in ("lilicorr", "dspark", "dflash2")}
    assert shares["lilicorr"] == {"dflash": 1.0, "lattice": 0.25, "distractor": 0.25}
    assert shares["dspark"] == {"cross_entropy": 0.1, "distance": 0.9, "confidence": 1.0}
    assert shares["dflash2"] == {"dflash": 1.0, "selector": 1.0}
    assert [base_weight(p, 0.5) for p in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.5, 0.0, 0.0]


def test_dpace_weights() -> None:
    """Against its definition, slot by slot, in float64."""
    drafter, batch = drafter_and_batch("dflash")
    terms = []
    for block in slots(drafter, batch):
        products, product = [], 1.0
        for s in block:
            p = float((-nll(s.logits, s.gold)).exp().detach())
            product *= (0.5 * p + 0.5) if s.supervised else 1.0
            products.append(product * s.supervised)
        terms += [(sum(products[s.index :]) * s.supervised, nll(s.logits, s.gold)) for s in block]
    got = run(drafter, batch, dpace_alpha=0.5).parts["dflash"]
    assert float(got) == pytest.approx(mean(terms), rel=2e-5)


@pytest.mark.parametrize("arm", DRAFTERS)
def test_prefix_counts(arm: str) -> None:
    """Whole blocks only; the backbone's own run is recounted slot by slot; no head beats the oracle."""
    drafter, batch = drafter_and_batch(arm)
    counts = {name: int(value) for name, value in run(drafter, batch).counts.items()}
    whole, top1 = 0, 0
    for block in slots(drafter, batch):
        drafted = block[: drafter.config.drafted]
        if all(s.supervised for s in drafted):
            whole += 1
            wrong = [s.index for s in drafted if int(s.logits.argmax()) != s.gold]
            top1 += wrong[0] if wrong else len(drafted)
    assert (counts["blocks"], counts["top1_prefix"]) == (whole, top1)
    assert 0 < whole < 7
    assert top1 > 0
    assert counts["selected_prefix"] <= counts.get("oracle_prefix", 15 * whole)


@pytest.mark.parametrize("arm", DRAFTERS)
def test_shares_of_a_split_batch_add_up(arm: str) -> None:
    """Normalised over both halves, the two sequences' losses are the whole batch's; so are the gradients."""
    drafter, batch = drafter_and_batch(arm)
    whole = run(drafter, batch)
    whole.total.backward()
    expected = {n: p.grad.clone() for n, p in drafter.named_parameters() if p.grad is not None}
    drafter.zero_grad()
    halves = [run(drafter, only(batch, sequence)) for sequence in range(2)]
    norms = {name: sum(half.norms[name] for half in halves) for name in whole.norms}
    shares = [half.over(norms) for half in halves]
    assert float(sum(shares).detach()) == pytest.approx(float(whole.total.detach()), rel=1e-5)
    for share in shares:
        share.backward()
    for name, parameter in drafter.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-3, atol=1e-5)


def only(batch: TrainingBatch, sequence: int) -> TrainingBatch:
    part = slice(sequence, sequence + 1)
    per_sequence = ("tokens_BS", "loss_BS", "anchor_BN", "keep_BN", "features_BSF", "final_BSH")
    values = {name: getattr(batch, name)[part] for name in per_sequence}
    return TrainingBatch(**values, embedding_VH=batch.embedding_VH, head_VH=batch.head_VH)


@pytest.mark.parametrize("arm", DRAFTERS)
def test_chunks_change_nothing(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paper-scale vocabulary goes through a few rows at a time; loss and gradients are the same."""
    drafter, batch = drafter_and_batch(arm)
    run(drafter, batch).total.backward()
    expected = {n: p.grad.clone() for n, p in drafter.named_parameters() if p.grad is not None}
    drafter.zero_grad()
    monkeypatch.setattr(crossentropy, "_LOGITS", 96 * 10)
    run(drafter, batch).total.backward()
    for name, parameter in drafter.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-3, atol=1e-5)


def gradients(arm: str, term: str) -> tuple[set[str], TrainingBatch]:
    """Parameters that the gradient of one term reaches; and the batch, whose tensors ask for gradients, too."""
    drafter, batch = drafter_and_batch(arm)
    for tensor in (batch.features_BSF, batch.final_BSH, batch.embedding_VH, batch.head_VH):
        tensor.requires_grad_()
    run(drafter, batch).sums[term].backward()
    reached = {n for n, p in drafter.named_parameters() if p.grad is not None and bool(p.grad.abs().sum() > 0)}
    return reached, batch


@pytest.mark.parametrize(
    ("arm", "term", "head_is_reached"),
    [
        ("dflash2", "dflash", False),
        ("dflash2", "selector", True),
        ("domino", "base", False),
        ("domino", "final", True),
        ("dspark", "distance", True),
        ("dspark", "confidence", True),
        ("lilicorr", "dflash", False),
        ("lilicorr", "lattice", True),
        ("lilicorr", "distractor", True),
    ],
)
def test_what_each_term_trains(arm: str, term: str, head_is_reached: bool) -> None:
    """Every term trains the backbone, the context's projection included; only a head's own terms train it."""
    reached, _ = gradients(arm, term)
    assert any(name.startswith("head.") for name in reached) is head_is_reached
    assert {"backbone.fc.weight", "backbone.layers.0.self_attn.q_proj.weight", "backbone.norm.weight"} <= reached


def test_confidence_does_not_train_the_logits() -> None:
    """Its target is a constant: W2, which only shapes the logits, gets nothing; W1 is its input and does."""
    reached, _ = gradients("dspark", "confidence")
    assert "head.markov_head.markov_w2.weight" not in reached
    assert "head.markov_head.markov_w1.weight" in reached


def test_teacher_is_a_constant() -> None:
    for arm, term in (("dspark", "distance"), ("lilicorr", "distractor")):
        _, batch = gradients(arm, term)
        assert batch.final_BSH.grad is None, arm


def test_lilicorr_candidates_are_constants() -> None:
    """The lattice's terms reach neither the candidates' embeddings nor, through its distractors, the target's head."""
    drafter, batch = drafter_and_batch("lilicorr")
    embedding = batch.embedding_VH.clone().requires_grad_()
    changed = TrainingBatch(**{**vars(batch), "embedding_VH": embedding})
    rows = embedding[torch.randint(0, 9, (2, 3))]
    assert rows.requires_grad  # the fault this test looks for would show
    run(drafter, changed).sums["lattice"].backward()
    used = torch.zeros(len(embedding), dtype=torch.bool)
    used[batch.tokens_BS.gather(1, batch.anchor_BN)[batch.keep_BN]] = True  # the anchors' rows are block inputs
    used[drafter.config.mask_token_id] = True
    assert embedding.grad is None or not embedding.grad[~used].any()


def test_lilicorr_scores_see_log_probabilities() -> None:
    """Adding one vector to all rows of the head leaves every log-probability as it is, so the gradients of the rows
    cancel; they would not if the logit or its normaliser were a constant.
    """
    drafter, batch = drafter_and_batch("lilicorr")
    batch.head_VH.requires_grad_()
    run(drafter, batch).sums["lattice"].backward()
    gradient_VH = batch.head_VH.grad
    assert gradient_VH is not None
    assert float(gradient_VH.abs().sum()) > 1e-2
    torch.testing.assert_close(gradient_VH.sum(0), torch.zeros(H), rtol=0, atol=1e-5)


def test_lilicorr_without_a_whole_block() -> None:
    drafter, batch = drafter_and_batch("lilicorr")
    batch.loss_BS[:, 13:] = False
    loss = run(drafter, batch)
    loss.total.backward()
    assert float(loss.norms["lattice"]) == 0
    assert float(loss.parts["lattice"]) == 0
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in drafter.parameters())
