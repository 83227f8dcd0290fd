"""Token trees from marginals: which nodes to draft, what they are worth, who sees whom, and recursive rejection.

Knows probabilities; the rules that walk a tree are torch (drafters/reference/trees.py). ``marginals[d][r]`` is the
chance that the candidate of rank r at depth d + 1 is the target's token, given that its parent was accepted; as in a
block drafter, it does not depend on which parent that is. Node 0 is the anchor and ``parents[0]`` is -1; a node is
named by the ranks on its way down.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Path = tuple[int, ...]  # ranks from the anchor down
ASSUMES = (
    "marginals of a depth do not depend on the parent",
    "candidates of one node exclude each other (temperature 0: at most one is the target's token)",
)


@dataclass(frozen=True, kw_only=True)
class Tree:
    """``paths`` and ``parents`` with the anchor first and parents before children; ``survival`` of each node."""

    paths: tuple[Path, ...]
    parents: tuple[int, ...]
    survival: tuple[float, ...]

    @property
    def tokens(self) -> float:
        """Expected tokens a block: every node counts by its chance of being accepted; the anchor's is the bonus."""
        return sum(self.survival)


def tree_of(paths: Sequence[Path], marginals: Sequence[Sequence[float]]) -> Tree:
    """The tree of these nodes (the anchor is added). ValueError if a node's parent is not among them."""
    ordered = ((), *sorted(paths, key=lambda path: (len(path), path)))
    place = {path: i for i, path in enumerate(ordered)}
    orphans = [path for path in ordered[1:] if path[:-1] not in place]
    if orphans:
        raise ValueError(f"no parent for {orphans[0]}")
    return Tree(
        paths=ordered,
        parents=(-1, *(place[path[:-1]] for path in ordered[1:])),
        survival=tuple(float(np.prod([marginals[d][r] for d, r in enumerate(path)])) for path in ordered),
    )


def best_tree(marginals: Sequence[Sequence[float]], nodes: int) -> Tree:
    """The tree of ``nodes`` drafted nodes with the most expected tokens: always the likeliest node that can be added.

    That is the optimum: a node is never likelier than its parent, so the likeliest nodes of all form a tree. Fewer
    nodes where the marginals have no more.
    """
    taken: list[Path] = []
    open_nodes: list[tuple[float, Path]] = []

    def offer(path: Path, chance: float) -> None:
        if len(path) < len(marginals):
            for rank, share in enumerate(marginals[len(path)]):
                heapq.heappush(open_nodes, (-chance * share, (*path, rank)))

    offer((), 1.0)
    while open_nodes and len(taken) < nodes:
        negative, path = heapq.heappop(open_nodes)
        taken.append(path)
        offer(path, -negative)
    return tree_of(taken, marginals)


def walked_blocks(tree: Tree, ranks: Sequence[Sequence[int]]) -> list[int]:
    """Tokens of each block of a greedy run with this tree: no model, a walk over what was drafted from every anchor.

    ``ranks[t][d]`` is the rank of the target's token among the candidates that slot d holds from anchor t. As in a
    block drafter, a slot's candidates are the same below every parent. The last block is not cut.
    """
    paths, found, anchor = set(tree.paths), [], 0
    while anchor < len(ranks):
        depth = 0
        while depth < len(ranks[anchor]) and tuple(ranks[anchor][: depth + 1]) in paths:
            depth += 1
        found.append(depth + 1)
        anchor += depth + 1
    return found


def prefix_mask(parents: Sequence[int]) -> NDArray[np.bool_]:
    """[N, N]: node i sees itself and its ancestors."""
    mask = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def some_child_accepted(p_V: Array, q_V: Array, children: int, replacement: bool) -> float:
    """Chance that recursive rejection accepts one of ``children`` candidates drawn from q, with or without replacement.

    With replacement each try meets the residual of the one before it, whatever was drawn: 1 - prod TV(p_i, q). Without,
    later candidates depend on those rejected, and every order of them is summed: V! / (V - children)! terms.
    """
    if replacement:
        rejected = 1.0
        for _ in range(children):
            rejected *= 1 - float(np.minimum(p_V, q_V).sum())
            p_V = _residual(p_V, q_V)
        return 1 - rejected
    return 1 - _all_rejected(p_V, q_V, children)


def _all_rejected(p_V: Array, q_V: Array, children: int) -> float:
    """Chance that all of ``children`` draws without replacement are rejected; fewer where q has no more tokens."""
    if not children or not q_V.any():
        return 1.0
    left = 0.0
    for token in np.flatnonzero(q_V):
        rejected = q_V[token] - min(p_V[token], q_V[token])
        if rejected > 0:
            rest = q_V.copy()
            rest[token] = 0
            mass = rest.sum()
            left += rejected * _all_rejected(_residual(p_V, q_V), rest / mass if mass > 0 else rest, children - 1)
    return float(left)


def _residual(p_V: Array, q_V: Array) -> Array:
    """max(p - q, 0), normalised; p itself where nothing is left (then no try is ever rejected)."""
    rest = np.maximum(p_V - q_V, 0)
    mass = rest.sum()
    return rest / mass if mass > 0 else p_V
