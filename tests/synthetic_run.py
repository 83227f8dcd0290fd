"""A made-up run with known truth: for tests, benchmarks, and a look at the tables before anything was measured.

Each arm has a chance per slot and a block time, each benchmark a factor; requests draw their accepted counts from them,
run in a closed loop of c streams, and end in the middle of a block as real ones do. All of it is seeded. The header
says ``synthetic`` where the device stands, so these rows can never merge with measured ones.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heapreplace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.schema.request import Row
from harness.store import run as store
from harness.sweep import plan as planning
from harness.sweep.plan import Allocation, Plan, PlannedLaunch
from sglang_specbench.arms import DRAFTED, get_arm

BLOCK_MS = {"ar": 6.7, "dflash": 8.87}  # of an AR token and of the DFlash control
HEAD_MS = {"dflash2": 0.26, "lilicorr": 0.30, "lilicorr-conv": 0.44, "domino": 0.61, "dspark": 0.78}
CHANCE = {"dflash": 0.80, "dflash2": 0.825, "domino": 0.826, "dspark": 0.83, "lilicorr": 0.835, "lilicorr-conv": 0.838}
EASE = {
    "math500": 1.04,
    "aime25": 1.0,
    "alpaca": 0.85,
    "mt-bench": 0.87,
    "speed-qualitative": 0.93,
    "high_entropy": 0.8,
}
PREFILL_S = 0.02
LAUNCH_NOISE = 0.002  # relative, per launch
SPEED_CATEGORIES = ("coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem")
PAPER_SETS = (
    "gsm8k",
    "math500",
    "aime25",
    "humaneval",
    "mbpp",
    "livecodebench",
    "alpaca",
    "mt-bench",
    "speed-qualitative",
)
PAPER_ARMS = ("ar", "lilicorr", "dflash2", "domino", "dspark", "dflash", "lilicorr-conv")
ARGMAX_ARMS = ("lilicorr-argmax", "dflash2-argmax", "dspark-argmax")


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What an arm is made to do at a place: chance of a slot given the one before, seconds per block at c streams."""

    chance: float
    block_s: float

    @property
    def places(self) -> NDArray[np.float64]:
        """P(a block commits i drafts), i = 0..15."""
        reached = self.chance ** np.arange(DRAFTED + 1)
        return np.asarray(reached - np.append(reached[1:], 0.0))

    @property
    def tau(self) -> float:
        """Mean tokens of a block, bonus counted."""
        return float(1 + self.places @ np.arange(DRAFTED + 1))


def truth(cell: Cell) -> Truth:
    """The truth behind a cell, launch noise aside."""
    arm, _, word = cell.arm.partition("@")  # another checkpoint accepts a little less
    root = arm.removesuffix("-argmax").removesuffix("-exact").removesuffix("-full")
    ease = EASE.get(cell.prompt_set, 1.0) * EASE.get(cell.tier, 1.0) * (0.96 if cell.temperature else 1.0)
    less = (0.985 if root != arm else 1.0) * (0.98 if word else 1.0)
    chance = 0.0 if cell.arm == "ar" else min(CHANCE[root] * ease * less, 0.97)
    block = BLOCK_MS.get(root, BLOCK_MS["dflash"] + HEAD_MS.get(root, 0.0)) / 1000
    size = 0.64 if cell.target.endswith("4B") else 1.0
    return Truth(chance=chance, block_s=block * size * (1 + 0.03 * (cell.concurrency - 1)))


def run(cells: Iterable[Cell], tokens: int = 200) -> Iterator[tuple[Header, list[Row]]]:
    """Header and rows of each cell; answers are about ``tokens`` long."""
    for order, cell in enumerate(cells):
        rng = np.random.default_rng(int(_identity(cell), 16))
        allocation = f"{cell.target}-s{cell.seed}-r{cell.repeat}"
        launch = f"{allocation}-{cell.arm}-{cell.replica}"
        drift = 1 + LAUNCH_NOISE * np.random.default_rng(zlib.crc32(launch.encode())).standard_normal()
        rows = list(_rows(cell, rng, tokens, drift))
        wall = max(row.done_s for row in rows)
        yield (
            Header(
                cell=cell,
                outcome="ok",
                wall_s=wall,
                allocation=allocation,
                launch=launch,
                order=order,
                environment={"device_name": "synthetic", "attested": True},
            ),
            rows,
        )


def failed(header: Header, outcome: str, reason: str) -> tuple[Header, list[Row]]:
    """The same cell, had it failed."""
    return replace(header, outcome=outcome, reason=reason, wall_s=None), []


def _identity(cell: Cell) -> str:
    """What decides the tokens: at T=0 a repeat says the same again, whatever the launch."""
    return cell.id if cell.temperature else replace(cell, repeat=0, replica=0).id


def _rows(cell: Cell, rng: np.random.Generator, tokens: int, drift: float) -> Iterator[Row]:
    """A closed loop: each stream takes the next prompt when it is free. Arms share the lengths of their answers."""
    made = truth(cell)
    lengths = np.random.default_rng(zlib.crc32(cell.prompt_set.encode())).gamma(4.0, tokens / 4, size=2 * cell.prompts)
    free = [0.0] * cell.concurrency
    for index in range(cell.prompts):
        category = SPEED_CATEGORIES[index % len(SPEED_CATEGORIES)] if cell.prompt_set == "speed-qualitative" else ""
        sent = free[0]
        for turn in range(2 if cell.prompt_set == "mt-bench" else 1):
            wanted = max(int(lengths[2 * index + turn]), 2)
            row = _row(cell, made, rng, wanted, drift, sent)
            if cell.stream:  # in two chunks
                row = replace(row, chunk_s=(row.first_token_s, row.done_s), chunk_tokens=(1, row.completion_tokens))
            yield replace(row, index=index, turn=turn, prompt_id=f"{cell.prompt_set}-{index}", category=category)
            sent = row.done_s
        heapreplace(free, sent)


def _row(cell: Cell, made: Truth, rng: np.random.Generator, wanted: int, drift: float, sent: float) -> Row:
    """One request of about ``wanted`` tokens, sent at ``sent``."""
    first = sent + PREFILL_S * drift
    row = Row(
        index=0, prompt_id="", prompt_hash="", prompt_tokens=100, completion_tokens=wanted, finish_reason="stop",
        sent_s=sent, first_token_s=first, done_s=first + (wanted - 1) * made.block_s * drift, output_hash="",
    )  # fmt: skip
    if cell.proposal == "none":
        return row
    blocks = max(round((wanted - 1) / made.tau), 1)
    histogram = rng.multinomial(blocks, made.places)
    correct = int(histogram @ np.arange(DRAFTED + 1))
    last = rng.choice(DRAFTED + 1, p=histogram / blocks)  # what the last block committed: EOS may cut it short
    cut = int(rng.integers(0, last + 1))
    return replace(
        row,
        completion_tokens=1 + correct + blocks - cut,
        verify_ct=blocks,
        correct_drafts=correct,
        histogram=tuple(map(int, histogram)),
        done_s=first + blocks * made.block_s * drift,
    )


def cell(target: str, arm: str, prompt_set: str, temperature: float = 0.0, **changes: object) -> Cell:
    """A cell with the fields that do not matter here filled in."""
    fields: dict[str, object] = {
        "target_digest": f"{target}-weights", "draft_digest": "" if arm == "ar" else f"{arm}-weights",
        "prompt_version": "1", "seed": 42, "concurrency": 1, "prompts": 30, "max_new_tokens": 4096,
        "proposal": get_arm(arm).proposal(temperature), "server": (), "versions": (),
    }  # fmt: skip
    return Cell(
        target=target, arm=arm, prompt_set=prompt_set, temperature=temperature, **{**fields, **changes}  # type: ignore[arg-type]
    )  # fmt: skip


def paper_cells(prompts: int, targets: tuple[str, ...] = ("Qwen3-8B", "Qwen3-4B"), repeats: int = 2) -> list[Cell]:
    """Every cell behind the paper's tables: nine sets, T=0 (with A/A repeats), three seeds at T=1, SPEED tiers."""
    cells = []
    for target in targets:
        for name in PAPER_SETS:
            for repeat in range(repeats):
                cells += [
                    cell(target, arm, name, prompts=prompts, repeat=repeat) for arm in (*PAPER_ARMS, "lilicorr-exact")
                ]
            cells += [
                cell(target, arm, name, 1.0, prompts=prompts, seed=seed)
                for arm in (*PAPER_ARMS, *ARGMAX_ARMS)
                for seed in (42, 43, 44)
            ]
    tiers = ("low_entropy", "mixed", "high_entropy")
    cells += [
        cell(targets[0], arm, f"speed-throughput-{isl}", tier=tier, concurrency=c, prompts=prompts)
        for isl in ("1k", "2k") for tier in tiers for c in (1, 2, 4, 8, 16, 32) for arm in PAPER_ARMS[:6]
    ]  # fmt: skip
    return cells


def write(run_dir: Path, made: Iterable[tuple[Header, list[Row]]], planned: Iterable[Cell] | None = None) -> Path:
    """Store the cells as a run folder, with the plan of ``planned`` (default: of just these cells)."""
    cells = []
    for header, rows in made:
        store.write_cell(run_dir, header, rows)
        cells.append(header.cell)
    run_dir.mkdir(parents=True, exist_ok=True)
    planning.write(plan(cells if planned is None else planned), run_dir)
    return run_dir


def plan(cells: Iterable[Cell]) -> Plan:
    """A plan of just these cells, one launch each."""
    launches: dict[tuple[str, int, int], list[PlannedLaunch]] = {}
    for cell in cells:
        own = launches.setdefault((cell.target, cell.seed, cell.repeat), [])
        own.append(PlannedLaunch(id=cell.id[:12], order=len(own), target_path="", draft_path="", cells=(cell,)))
    return Plan(
        name="made",
        allocations=tuple(
            Allocation(id=f"{t}-s{s}-r{r}", target=t, seed=s, repeat=r, launches=tuple(found))
            for (t, s, r), found in launches.items()
        ),
    )
