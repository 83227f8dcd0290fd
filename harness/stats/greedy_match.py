"""At temperature 0 a lossless arm writes what plain decoding writes: the outputs of a run compared, prompt by prompt.

Over output hashes, so it costs nothing. In float32 an unequal output is a defect. In bfloat16 verification computes
with other matrix shapes than decoding, near-ties may break the other way, and inequality is only reported. AR's own
closing cells are compared as well: they are the control.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.schema import comparable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Equality:
    """How many of ``compared`` outputs of ``cell`` equal those of AR; ``first`` is the first prompt that differs."""

    cell: str
    label: str  # for people
    arm: str
    equal: int
    compared: int
    required: bool  # float32: must be equal
    first: str = ""

    @property
    def broken(self) -> bool:
        return self.required and self.equal < self.compared

    def __str__(self) -> str:
        text = f"{self.label}: {self.equal} of {self.compared} greedy outputs equal AR's"
        return f"{text}; the first that differs is of prompt {self.first}" if self.first else text


def equalities(cells: "pd.DataFrame", rows: "pd.DataFrame") -> Iterator[Equality]:
    """Every ok cell at temperature 0 against the first AR cell of the same prompts; frames of `store.load`."""
    greedy = cells[(cells.outcome == "ok") & (cells.temperature == 0)]
    outputs = dict(iter(rows.set_index(["prompt_id", "turn"]).groupby("cell", observed=True).output_hash))
    for _, group in greedy.groupby(comparable.rivals(), sort=False):
        plain = group[group.arm == "ar"].sort_values(["repeat", "replica"])
        if plain.empty:
            continue
        expected = outputs[plain.cell.iloc[0]]
        for cell in group[group.cell != plain.cell.iloc[0]].itertuples():
            same = outputs[cell.cell].eq(expected.reindex(outputs[cell.cell].index))
            yield Equality(
                cell=cell.cell,
                label=f"{cell.target}/{cell.arm} {cell.prompt_set} c={cell.concurrency} r{cell.repeat}",
                arm=cell.arm,
                equal=int(same.sum()),
                compared=len(same),
                required=cell.dtype == "float32",
                first="" if same.all() else str(same[~same].index[0][0]),
            )
