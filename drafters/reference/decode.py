"""Block speculative decoding of one sequence with any Hugging Face causal LM: the oracle that servers are held against.

Knows the loop and how SGLang 0.5.23 counts; the rules of acceptance are `verify`'s, the drafts the head's. Plain and
slow on purpose. A block: draft from the context strictly before the anchor, let the target read anchor and drafts in
one pass, commit what is accepted and one token of the target's own, which is the next anchor.

Shapes: D drafted slots, W = D + 1 verified rows, S context positions, V vocabulary; a leading 1 is the batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from drafters.model.blocks import Blocks
from drafters.model.drafter import Drafter
from drafters.model.draw import draw
from drafters.model.proposal import Drafting, Proposal
from drafters.reference.target import Cursor, Target
from drafters.reference.verify import greedy_match, processed_target, speculative_round


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How tokens are chosen. At temperature 0 every drafter commits the argmax, whatever ``proposal`` says.

    ``pool`` is Domino's (0: whole vocabulary), ``exact_path`` LiLiCorr's.
    """

    temperature: float = 0.0
    proposal: Literal["argmax", "sampled"] = "argmax"
    pool: int = 0
    exact_path: bool = False


@dataclass(frozen=True)
class Decoded:
    """``accepted``: accepted drafts of each verify block, the target's own token not counted, the last one uncut.

    ``output_ids`` begins with the token that the prompt's own pass gives; it ends with the first end-of-sequence token
    or at the length limit, so it can be shorter than ``1 + sum(accepted) + len(accepted)``, as in SGLang's counters.
    """

    output_ids: list[int]
    accepted: list[int]


def decode(
    target: Target,
    drafter: Drafter,
    prompt_ids: Sequence[int],
    max_new_tokens: int,
    rule: Rule,
    *,
    eos_ids: Sequence[int] = (),
    generator: torch.Generator | None = None,
) -> Decoded:
    """Continue ``prompt_ids``. Draws come from ``generator`` (default: torch's)."""
    output: list[int] = []
    accepted: list[int] = []
    for committed in committed_blocks(target, drafter, prompt_ids, rule, generator):
        if output:  # the first token is the prompt's
            accepted.append(len(committed) - 1)
        output += committed
        ends = [place for place, token in enumerate(output) if token in eos_ids]
        if ends or len(output) >= max_new_tokens:
            return Decoded(output[: min([max_new_tokens, *(end + 1 for end in ends)])], accepted)
    raise AssertionError("the target never stops by itself")


@torch.no_grad()
def committed_blocks(
    target: Target,
    drafter: Drafter,
    prompt_ids: Sequence[int],
    rule: Rule,
    generator: torch.Generator | None = None,
) -> Iterator[list[int]]:
    """Without end: the token after the prompt, then each block's accepted drafts and the token after them."""
    device = target.embedding_VH.device
    cursor = Cursor(target, drafter.config.target_layer_ids)
    logits_SV, features_SF = cursor.read(torch.tensor(prompt_ids, device=device))
    context_1SH = drafter.context(features_SF[None])
    anchor_1 = _next_token(logits_SV[-1:], rule, generator)
    yield anchor_1.tolist()
    while True:
        coins_31D = torch.rand(3, 1, drafter.config.drafted, generator=generator).to(device)
        proposal = draft(target, drafter, context_1SH, anchor_1, rule, coins_31D[0])
        read_W = torch.cat([anchor_1, proposal.tokens_BD[0]])
        logits_WV, features_WF = cursor.read(read_W)
        accepted_1, anchor_1 = _verify(proposal, logits_WV[None], rule, coins_31D[1:])
        kept = 1 + int(accepted_1)
        cursor.rewind(context_1SH.shape[1] + kept)
        context_1SH = torch.cat([context_1SH, drafter.context(features_WF[None, :kept])], 1)
        yield [*read_W[1:kept].tolist(), int(anchor_1)]


def draft(
    target: Target, drafter: Drafter, context_1SH: Tensor, anchor_1: Tensor, rule: Rule, coins_1D: Tensor
) -> Proposal:
    """One block's proposal behind ``context_1SH`` and the anchor token."""
    return drafter.head.propose(drafting(target, drafter, context_1SH, anchor_1, rule, coins_1D))


def drafting(
    target: Target, drafter: Drafter, context_1SH: Tensor, anchor_1: Tensor, rule: Rule, coins_1D: Tensor
) -> Drafting:
    """What the head drafts one block from."""
    config, length = drafter.config, context_1SH.shape[1]
    ids_R = torch.full((config.rows,), config.mask_token_id, device=anchor_1.device)
    ids_R[0] = anchor_1[0]
    blocks = Blocks(torch.full_like(anchor_1, length)[None], config.rows, length)
    h_11RH = drafter.backbone(target.embedding_VH[ids_R][None, None], context_1SH, blocks)
    sampled = rule.proposal == "sampled" and rule.temperature > 0
    return Drafting(
        h_BDH=h_11RH[0, :, config.first_row :][:, : config.drafted],
        anchor_B=anchor_1,
        before_BH=context_1SH[:, -1],
        has_before_B=torch.ones_like(anchor_1, dtype=torch.bool),
        embedding_VH=target.embedding_VH,
        head_VH=target.head_VH,
        temperature=rule.temperature,
        coins_BD=coins_1D if sampled else None,
        pool=rule.pool,
        exact_path=rule.exact_path,
    )


def _verify(proposal: Proposal, logits_1WV: Tensor, rule: Rule, coins_21D: Tensor) -> tuple[Tensor, Tensor]:
    if rule.temperature == 0:
        return greedy_match(proposal.tokens_BD, logits_1WV.argmax(-1))
    p_1WV = processed_target(logits_1WV, rule.temperature)
    return speculative_round(proposal.tokens_BD, p_1WV, proposal.q_BDV, coins_21D[0], coins_21D[1, :, 0])


def _next_token(logits_1V: Tensor, rule: Rule, generator: torch.Generator | None) -> Tensor:
    coin_1 = torch.rand(1, generator=generator).to(logits_1V.device)
    return draw(processed_target(logits_1V, rule.temperature), coin_1)
