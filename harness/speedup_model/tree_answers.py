"""The tables of `specbench model --tree` and ``--rejection``: the best tree, and a node's chance to go on.

Knows how marginals are written and how an answer is laid out; numbers come from `trees` and from costs.
"""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from harness.speedup_model import trees
from harness.speedup_model.answers import NO_ROOM, Lines, Tables, assumptions
from harness.speedup_model.costs import Costs
from harness.speedup_model.trees import Tree, best_tree, prefix_mask, some_child_accepted
from sglang_specbench.errors import UserError

Marginals = list[list[float]]
LONGEST = 15  # depths that one stated line of marginals is repeated for: what the block arms draft
MOST_NODES = 1024
MOST_TOKENS = 7  # of a vocabulary for recursive rejection: every order of rejected candidates is summed
SUM_SLACK = 1e-3  # printed shares are rounded
ASSUMES = (
    *trees.ASSUMES,
    "a tree's drafts cost what a chain of its depth costs; each node is one verified position",
)


def read_marginals(text: str) -> Marginals:
    """``0.6,0.2,0.08`` (the candidates of every depth alike, `LONGEST` depths) or a CSV file with a line a depth.

    `UserError` for what are no chances of candidates that exclude each other.
    """
    path = Path(text)
    if path.is_file():
        try:
            with path.open(newline="", encoding="utf-8") as file:
                lines = [line for line in csv.reader(file) if line]
        except (csv.Error, UnicodeDecodeError) as error:
            raise UserError(f"model: --marginals {text}: {error}", _REMEDY) from None
        if not lines:
            raise UserError(f"model: --marginals {text}: the file is empty", _REMEDY)
        return [_chances(line, f"--marginals {text}: depth {depth}") for depth, line in enumerate(lines, 1)]
    return [_chances(text.split(","), f"--marginals {text}")] * LONGEST


_REMEDY = "write 0.6,0.2,0.08, or a CSV file with a line a depth"


def _chances(words: Sequence[str], where: str) -> list[float]:
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise UserError(f"model: {where}: no numbers, and no such file", _REMEDY) from None
    if not all(0 <= chance <= 1 for chance in found) or sum(found) > 1 + SUM_SLACK:
        raise UserError(f"model: {where}: chances lie between 0 and 1, and sum to at most 1", _REMEDY)
    return found


def tree_tables(
    marginals: Marginals, nodes: int, costs: Callable[[int], Costs], batch: int, assumes: Iterable[str] = ()
) -> Tables:
    """The best trees up to ``nodes`` against chains of the same budget, and the largest one node by node.

    ``costs(drafted)`` are those of a block of that depth, and ``assumes`` what they rest on.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise UserError(f"model: --tree {nodes}: not between 1 and {MOST_NODES:,} nodes", "write --tree 15")
    sizes = sorted({*(1 << k for k in range(nodes.bit_length())), nodes})
    lines = [_tree_line(marginals, size, costs, batch) for size in sizes]
    tree = best_tree(marginals, nodes)
    return {
        f"best trees, at batch {batch}": lines,
        f"the best tree of {len(tree.paths) - 1} nodes": _node_lines(tree),
        "assumptions": assumptions(ASSUMES, (f"costs: {costs(_depth(tree)).source}",), assumes),
    }


def _tree_line(
    marginals: Marginals, nodes: int, costs: Callable[[int], Costs], batch: int
) -> dict[str, str | int | float]:
    likeliest = [[max(ranks, default=0.0)] for ranks in marginals]
    tree, chain = best_tree(marginals, nodes), best_tree(likeliest, nodes)
    levels = np.bincount([len(path) for path in tree.paths])
    return {
        "nodes": nodes,
        "chain: tokens": chain.tokens,
        "chain: speedup": _speedup(chain, costs, batch),
        "tree: tokens": tree.tokens,
        "tree: speedup": _speedup(tree, costs, batch),
        "depth": _depth(tree),
        "widest level": int(levels.max()),
    }


def _speedup(tree: Tree, costs: Callable[[int], Costs], batch: int) -> float | str:
    """Tokens a block over its cost; every sequence verifies, and caches, the tree's nodes and its anchor."""
    nodes = len(tree.paths) - 1
    if batch > costs(nodes).fits:
        return NO_ROOM
    return tree.tokens / costs(_depth(tree)).ragged(batch, batch * nodes)


def _depth(tree: Tree) -> int:
    return max(map(len, tree.paths))


def _node_lines(tree: Tree) -> Lines:
    """A line a node, the anchor first: its parent, the candidate at each depth, its survival, what it attends to."""
    return [
        {
            "node": node,
            "parent": parent,
            "candidate ranks": " ".join(map(str, path)) or "anchor",
            "survival": survival,
            "sees": " ".join(map(str, np.flatnonzero(seen))),
        }
        for node, (path, parent, survival, seen) in enumerate(
            zip(tree.paths, tree.parents, tree.survival, prefix_mask(tree.parents), strict=True)
        )
    ]


def rejection_tables(text: str) -> Tables:
    """``P:Q``, each a list of probabilities: the chance that one of c children drawn from Q is accepted under P."""
    first, colon, second = text.partition(":")
    if not colon:
        raise UserError(f"model: --rejection {text}: no P:Q", "write 0.5,0.3,0.2:0.2,0.6,0.2 (target:drafter)")
    p, q = (_law(side, text) for side in (first, second))
    if len(p) != len(q):
        raise UserError(f"model: --rejection {text}: {len(p)} tokens against {len(q)}", "give each token both chances")
    tokens = int((q > 0).sum())
    return {
        "some child accepted": [
            {
                "children": children,
                "with replacement": some_child_accepted(p, q, children, True),
                "without": some_child_accepted(p, q, children, False),
            }
            for children in range(1, tokens + 1)
        ],
        "assumptions": assumptions(REJECTION_ASSUMES),
    }


REJECTION_ASSUMES = (
    "children are drawn from the drafter's distribution and tried in that order by recursive rejection",
    "the target's and the drafter's distributions are given in full, after temperature and truncation",
)


def _law(text: str, whole: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    try:
        found = np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise UserError(f"model: --rejection {whole}: no numbers", "write 0.5,0.3,0.2:0.2,0.6,0.2") from None
    if not (found >= 0).all() or not math.isclose(found.sum(), 1, abs_tol=SUM_SLACK):
        raise UserError(f"model: --rejection {whole}: chances of one side sum to {found.sum():g}", "make each side 1")
    if len(found) > MOST_TOKENS:
        raise UserError(
            f"model: --rejection: {len(found)} tokens, all orders are summed", f"give {MOST_TOKENS} at most"
        )
    return np.asarray(found / found.sum())
