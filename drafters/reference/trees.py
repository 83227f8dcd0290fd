"""Token trees: several candidates a position, verified in one pass.

Knows tree shapes, the mask and positions of the pass, and the rules that walk a tree; not how candidates are
proposed. Node 0 is the anchor; ``parents[i] < i`` for every other node (parents come first), and ``parents[0]`` is -1.

Rules: the greedy walk (SpecInfer, arXiv 2305.09781) and recursive rejection over the children of one node: with
replacement (children independent draws of q; SpecInfer's multi-step sampling) or without (arXiv 2402.14160, RSD:
each child from q with its elder siblings removed).

Shapes: N nodes, C children of one node, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from drafters.model.draw import draw
from drafters.reference.verify import residual


def ancestor_mask(parents: Sequence[int]) -> Tensor:
    """Bool [N, N]: node i sees node j if j is i or an ancestor of i; the anchor is everybody's ancestor."""
    mask = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents[1:], start=1):
        mask[node] |= mask[parent]
    return mask


def depths(parents: Sequence[int]) -> Tensor:
    """Int64 [N]: a node's distance from the anchor; its position in the sequence is the anchor's plus this."""
    return ancestor_mask(parents).sum(1) - 1


def greedy_walk(parents: Sequence[int], tokens: Sequence[int], target: Sequence[int]) -> tuple[list[int], int]:
    """Temperature 0: from the anchor, step to the child that holds the target's argmax while there is one.

    ``target[i]`` is the target's argmax after node i. Returns the nodes accepted, in order, and the token after them.
    """
    path: list[int] = []
    node = 0
    while True:
        children = (i for i, parent in enumerate(parents) if parent == node and tokens[i] == target[node])
        found = next(children, None)
        if found is None:
            return path, target[node]
        node = found
        path.append(node)


def without(q_V: Tensor, token: int) -> Tensor:
    """The distribution q with ``token`` removed, renormalised; all zeros when nothing is left."""
    rest = q_V.clone()
    rest[token] = 0
    mass = rest.sum()
    return rest / mass if mass > 0 else rest


def recursive_rejection(
    children: Sequence[int], p_V: Tensor, q_V: Tensor, coins: Sequence[float], replacement: bool
) -> tuple[int | None, Tensor]:
    """Try the children of one node in the order they were drawn; ``replacement`` says how that was.

    Each rejection replaces p by its residual against the q that the child came from. Returns the index of the
    accepted child, or None and the distribution that the token is then drawn from.
    """
    for index, (child, coin) in enumerate(zip(children, coins, strict=True)):
        if coin * q_V[child] < p_V[child]:
            return index, p_V
        p_V = residual(p_V, q_V)
        if not replacement:
            q_V = without(q_V, child)
    return None, p_V


def sampled_walk(
    parents: Sequence[int],
    tokens: Sequence[int],
    p_NV: Tensor,
    q_NV: Tensor,
    coins: Sequence[float],
    last_coin: float,
    replacement: bool,
) -> tuple[list[int], int]:
    """Temperature > 0: from the anchor, `recursive_rejection` among the children until none is accepted.

    Row i of ``p_NV`` and ``q_NV`` is the distribution of the token after node i; ``coins[i]`` decides node i. Returns
    the nodes accepted, in order, and the token after them.
    """
    path: list[int] = []
    node = 0
    while True:
        children = [i for i, parent in enumerate(parents) if parent == node]
        drawn, flips = [tokens[i] for i in children], [coins[i] for i in children]
        index, p_V = recursive_rejection(drawn, p_NV[node], q_NV[node], flips, replacement)
        if index is None:
            return path, int(draw(p_V, torch.tensor(last_coin, dtype=p_V.dtype)))
        node = children[index]
        path.append(node)
