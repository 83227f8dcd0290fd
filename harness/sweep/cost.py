"""What a plan costs: hours on 1, 2, 4 and 8 devices, memory of each arm, disk.

Pure. A cell's time is its tokens over tokens a second. Where a run (or the paper's tables) has the same target, arm,
set, temperature and concurrency, its throughput counts; else its median for that arm, temperature and concurrency over
other sets; else the roofline of target and block drafter, which is a lower bound. Every source is counted and said.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.schema.cell import Cell
from harness.speedup_model.batch_speedup import BLOCK_DRAFTER, USABLE, block, drafter
from harness.speedup_model.roofline import Hardware
from harness.speedup_model.shape import Shape
from harness.stats.absent import setting_of
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting
from harness.sweep.plan import Plan, PlannedLaunch
from sglang_specbench.errors import UserError

DEVICES = (1, 2, 4, 8)
START_S = {"cuda": 90.0, "cpu": 15.0}  # from the command to the first warm-up: load, capture graphs
ANSWER = 512  # tokens, where neither the set nor a run says: with reasoning off, of the order of the paper's sets
TAU = 4.0  # of a block drafter, where no run says: Table 5's averages lie between 3 and 5
PASS_S = 1e-3  # host and launch time of a pass beside its roofline: an H100 decodes Qwen3-8B with about as much
ROW_BYTES, CELL_BYTES = 300, 40_000  # Parquet of the demo: a row; a cell's header with its server's arguments
ASSUMES = (
    f"an answer of {ANSWER} tokens (or the set's limit, if less) where no run has the set",
    f"roofline: tau {TAU:g}, {1000 * PASS_S:g} ms a pass beside peak rates",
    f"{START_S['cuda']:g} s to start a server on a GPU, {START_S['cpu']:g} s on a CPU",
    f"an allocation stays on one device; {USABLE:.0%} of its memory holds weights and caches",
)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """GB that one server of ``arm`` needs: weights of target and drafter, and the cache of all requests in flight."""

    target: str
    arm: str
    weights_gb: float
    drafter_gb: float
    cache_gb: float

    @property
    def total_gb(self) -> float:
        return self.weights_gb + self.drafter_gb + self.cache_gb


@dataclass(frozen=True, kw_only=True)
class PlanCost:
    """``hours`` by number of devices; ``sources`` counts cells by where their time is from."""

    hours: Mapping[int, float]
    largest: tuple[str, float]  # the allocation that takes longest, and its hours
    sources: Mapping[str, int]
    memory: tuple[Memory, ...]
    download_gb: float
    rows_gb: float


def cost(plan: Plan, shapes: Mapping[str, Shape], hardware: Hardware | None, known: Results | None) -> PlanCost:
    """``shapes`` by target name; ``hardware`` None where there is no roofline (a CPU): then every cell needs a run.

    `UserError` for a cell of which nothing is known.
    """
    sources: Counter[str] = Counter()
    hours: dict[str, float] = {}
    for allocation in plan.allocations:
        seconds = [_launch_s(launch, shapes, hardware, known, sources) for launch in allocation.launches]
        hours[allocation.id] = sum(seconds) / 3600
    largest = max(hours, key=hours.__getitem__)
    missing = {model.source for model in plan.missing_models}
    memory = tuple(_memory(plan, shapes))
    absent = [m for m in memory if m.arm != "ar" and _source(plan, m, draft=True) in missing]
    targets = {m.target: m.weights_gb for m in memory if _source(plan, m, draft=False) in missing}
    return PlanCost(
        hours={n: _makespan(list(hours.values()), n) for n in DEVICES},
        largest=(largest, hours[largest]),
        sources=dict(sources),
        memory=memory,
        download_gb=sum(targets.values()) + sum({_source(plan, m, True): m.drafter_gb for m in absent}.values()),
        rows_gb=(sum(c.prompts for c in plan.cells) * ROW_BYTES + len(plan.cells) * CELL_BYTES) / 1e9,
    )


def _makespan(hours: Sequence[float], devices: int) -> float:
    """Longest first onto the device that is free first: within a third of the best schedule (Graham 1969)."""
    busy = [0.0] * devices
    for own in sorted(hours, reverse=True):
        heapq.heappush(busy, heapq.heappop(busy) + own)
    return max(busy)


def _launch_s(
    launch: PlannedLaunch,
    shapes: Mapping[str, Shape],
    hardware: Hardware | None,
    known: Results | None,
    sources: Counter[str],
) -> float:
    total = START_S[launch.cells[0].device]
    for cell in launch.cells:
        rate, source = _rate(cell, launch.window, shapes.get(cell.target), hardware, known)
        sources[source] += 1
        warm = sum(min(16 * (i + 1), cell.max_new_tokens) for i in range(cell.concurrency)) * 2  # measure.warmup
        total += (cell.prompts * _answer(cell, known) + warm) / rate
    return total


def _answer(cell: Cell, known: Results | None) -> float:
    """Tokens of an answer, the conversation's turns together."""
    if cell.ignore_eos:
        return cell.max_new_tokens
    seen = [] if known is None or known.cells is None else _answers(known, cell)
    return min(median(seen), cell.max_new_tokens) if seen else min(ANSWER, cell.max_new_tokens)


def _answers(known: Results, cell: Cell) -> list[float]:
    """Mean tokens of a conversation in each speculative cell of the same set: accepted, bonus, and the prefill's."""
    ids = known.cells[known.cells.prompt_set == cell.prompt_set].cell if known.cells is not None else ()
    counts = [known.prompt_counts[i] for i in ids if i in known.prompt_counts and known.prompt_counts[i].blocks.any()]
    return [float((c.correct + c.blocks).mean() + 1) for c in counts]


def _rate(
    cell: Cell, window: int, shape: Shape | None, hardware: Hardware | None, known: Results | None
) -> tuple[float, str]:
    """Tokens a second of all streams, and where the number is from."""
    place = setting_of(cell)
    if known is not None:
        own = known.get(place, "throughput")
        if isinstance(own, Estimate):
            return own.value, "the run, same set"
        if near := _elsewhere(known, place):
            return median(near), "the run, other sets"
    if shape is None or hardware is None:
        raise UserError(
            f"--budget: no time is known for {cell.label!r}",
            "name a run that has it (--run), or serve a target with a preset on a GPU with one",
        )
    context = cell.context_length / 2  # a request's mean
    made = block(shape, drafter(BLOCK_DRAFTER, shape), hardware, cell.concurrency, window - 1, context, PASS_S)
    if cell.proposal == "none":
        return cell.concurrency / made.ar.seconds, "roofline"
    return cell.concurrency * TAU / (made.draft_s + made.verify.seconds), "roofline"


def _elsewhere(known: Results, place: Setting) -> list[float]:
    """Throughputs of the arm at the same target, temperature and concurrency on other sets."""
    alike = [
        s
        for s in known.settings()
        if (s.target, s.arm, s.temperature, s.concurrency)
        == (place.target, place.arm, place.temperature, place.concurrency)
        and not s.category
        and s.benchmark != AVERAGE
    ]
    found = [known.get(s, "throughput") for s in alike]
    return [estimate.value for estimate in found if isinstance(estimate, Estimate)]


def _memory(plan: Plan, shapes: Mapping[str, Shape]) -> list[Memory]:
    """One line for each target with a shape and each of its arms."""
    found: dict[tuple[str, str], Memory] = {}
    for launch in plan.launches:
        first = launch.cells[0]
        shape = shapes.get(first.target)
        if shape is None or (first.target, first.arm) in found:
            continue
        drafting = drafter(BLOCK_DRAFTER, shape).shape if launch.draft_path else None
        cached = first.capacity * first.context_length
        found[first.target, first.arm] = Memory(
            target=first.target,
            arm=first.arm,
            weights_gb=shape.own_bytes / 1e9,
            drafter_gb=drafting.own_bytes / 1e9 if drafting else 0.0,
            cache_gb=cached * (shape.kv_bytes + (drafting.kv_bytes if drafting else 0)) / 1e9,
        )
    return list(found.values())


def _source(plan: Plan, memory: Memory, draft: bool) -> str:
    launch = next(x for x in plan.launches if (x.cells[0].target, x.arm) == (memory.target, memory.arm))
    return launch.draft_path if draft else launch.target_path
