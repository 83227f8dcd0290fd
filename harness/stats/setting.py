"""What a number is about: the words by which tables, figures and comparisons look it up.

A setting leaves out seeds and repeats: they are averaged over. ``benchmark`` is the prompt set's name in the harness;
the paper's printed names are mapped here, once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sglang_specbench.arms import ARMS, base_of

AVERAGE = "average"  # as a benchmark: the plain mean over the benchmarks of a table
ALL = ""  # as a category or tier: not split
# prompt set -> name as printed, in the paper's order of rows
BENCHMARKS = {
    "gsm8k": "GSM8K",
    "math500": "MATH-500",
    "aime25": "AIME 2025",
    "humaneval": "HumanEval",
    "mbpp": "MBPP",
    "livecodebench": "LiveCodeBench",
    "alpaca": "AlpacaEval",
    "mt-bench": "MT-Bench",
    "speed-qualitative": "SPEED",
    AVERAGE: "Average",
    "speed-throughput-1k": "1K",
    "speed-throughput-2k": "2K",
}
TIERS = {"low_entropy": "low", "mixed": "mixed", "high_entropy": "high"}
THROUGHPUT_SETS = ("speed-throughput-1k", "speed-throughput-2k")
ARM_ORDER = ("ar", "lilicorr", "dflash2", "domino", "dspark", "dflash")  # the paper's


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Setting:
    """One place in a table. ``seed`` is None for the mean over seeds."""

    target: str
    arm: str
    benchmark: str
    temperature: float
    concurrency: int = 1
    tier: str = ALL
    category: str = ALL
    seed: int | None = None

    def of(self, arm: str) -> "Setting":
        """The same place for another arm."""
        return replace(self, arm=arm)

    def __str__(self) -> str:
        extra = "".join(f" {x}" for x in (self.tier, self.category) if x)
        seed = f" seed {self.seed}" if self.seed is not None else ""
        return f"{self.target}/{self.arm} {self.benchmark}{extra} T={self.temperature:g} c={self.concurrency}{seed}"


def table_order(setting: Setting) -> tuple[object, ...]:
    """Sort key: target, temperature, concurrency, benchmark, tier, category, arm; known names in the paper's order."""
    return (
        *(setting.target, setting.temperature, setting.concurrency),
        _rank(setting.benchmark, BENCHMARKS),
        _rank(setting.tier, TIERS),
        setting.category,
        arm_order(setting.arm),
    )


def arm_order(arm: str) -> tuple[int, str]:
    """Sort key: the paper's order, then the table's; a variant stands behind its arm."""
    return _rank(base_of(arm), (*ARM_ORDER, *ARMS))[0], arm


def _rank(name: str, known: Iterable[str]) -> tuple[int, str]:
    names = list(known)
    return (names.index(name) if name in names else len(names), name)


def printed(benchmark: str) -> str:
    """The benchmark's printed name; its own name if the paper has none for it."""
    return BENCHMARKS.get(benchmark, benchmark)
