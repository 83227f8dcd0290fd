"""How long a drafter's head takes: all five at the geometry of Qwen3-8B and 4B, eager and in a CUDA graph.

    PYTHONPATH=. python bench/head_latency.py [--small] [--json FILE]

Needs torch and Triton, no SGLang, no checkpoint and no target: random weights, one block of 15 drafted tokens, greedy,
bf16 on a GPU. An arm's *cost* is its time less that of DFlash in the same round (arms take turns, so that drift
cancels), its convolutions included: the paper's definition (Table 3), by a second way. What is timed are our reference
heads, in plain torch operations: SGLang fuses several of them, so its cost is below the eager number and may be below
the captured one. ``--small``, and without a GPU: small sizes on a CPU in seconds; such numbers say
nothing of a GPU.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from drafters.lilicorr import head as lilicorr
from drafters.model.config import DrafterConfig
from drafters.model.conv import GroupedConv
from drafters.model.lattice import best_path
from drafters.model.proposal import Drafting
from drafters.model.registry import load_recipe, package
from sglang_specbench.serving.patches.lilicorr_exact import exact_path

ROUNDS, CALLS, WARM = 60, 10, 20  # rounds of so many calls, after so many that do not count
_SHARED = {"num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "num_hidden_layers": 36,
           "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1e6}  # fmt: skip
GEOMETRIES = {  # config.json of the hub's Qwen/Qwen3-8B and Qwen/Qwen3-4B
    "Qwen3-8B": {**_SHARED, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 12288},
    "Qwen3-4B": {**_SHARED, "hidden_size": 2560, "num_attention_heads": 32, "intermediate_size": 9728},
}
SMALL = {"small": {**_SHARED, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
                   "intermediate_size": 128, "vocab_size": 512}}  # fmt: skip
TINY_HEAD = {  # --small
    "dflash2": {"selector_rank": 8},
    "domino": {"gru_hidden_dim": 16, "emb_dim": 8},
    "dspark": {"markov_rank": 8},
    "lilicorr": {"lilicorr_hidden_size": 32, "lilicorr_num_heads": 2, "lilicorr_factor_dim": 16},
}
# arXiv 2608.20530, Table 3: head cost in ms on one H100, (Qwen3-8B, Qwen3-4B)
PAPER = {
    "dflash2": (0.256, 0.227),
    "lilicorr": (0.299, 0.276),
    "lilicorr-conv": (0.436, 0.396),
    "domino": (0.611, 0.586),
    "dspark": (0.779, 0.765),
}
POOL = 2048  # Domino's candidates, SGLang's default
ARMS = ("dflash", "dflash2", "lilicorr", "lilicorr-conv", "lilicorr-exact", "domino", "domino-full", "dspark")

Call = Callable[[], object]
Numbers = tuple[float, float, float]  # median, low, high


@dataclass(frozen=True, kw_only=True)
class Line:
    """One arm at one geometry: medians over rounds, in ms, with their 95 % intervals (`median`)."""

    geometry: str
    arm: str
    way: str  # eager | captured
    time_ms: Numbers | None  # of a call; None where it could not be captured
    cost_ms: Numbers | None  # less DFlash's of the same round; None for DFlash itself
    paper_ms: float | None
    note: str = ""


class Arm:
    """The head of ``name`` with random weights, and the convolutions of its backbone; a call drafts one block."""

    def __init__(self, name: str, geometry: dict[str, float], small: bool, shared: tuple[Tensor, Tensor]) -> None:
        self.name, trained = name, name.removesuffix("-exact").removesuffix("-full")
        recipe = {**load_recipe(trained).model, **(TINY_HEAD.get(trained.removesuffix("-conv"), {}) if small else {})}
        config = DrafterConfig.from_target(geometry, trained, mask_token_id=3, **recipe)
        self.head = package(trained).Head(config).eval()
        width = config.hidden_size
        self.convs = [
            GroupedConv(width, config.conv_kernel_size, config.conv_group_size)
            for _ in range(2 * config.num_hidden_layers if config.conv_kernel_size else 0)
        ]
        self.rows = torch.randn(1, config.rows, width)
        anchor = torch.tensor([5])
        self.drafting = Drafting(
            h_BDH=torch.randn(1, config.drafted, width),
            anchor_B=anchor,
            before_BH=torch.randn(1, width),
            has_before_B=torch.ones(1, dtype=torch.bool),
            embedding_VH=shared[0],
            head_VH=shared[1],
            exact_path=name == "lilicorr-exact",
            pool=0 if name == "domino-full" else min(POOL, config.vocab_size // 4),
        )

    def __call__(self) -> Tensor:
        for conv in self.convs:
            rows, after = conv.prepare(self.rows)
            conv.finish(rows, after)
        return self.head.propose(self.drafting).tokens_BD


def kernel_path(start_BK: Tensor, pair_BSPC: Tensor) -> Tensor:
    """`best_path` by the kernel that serves lilicorr-exact (torch on a CPU): the candidates are their own ranks."""
    batch, topk = start_BK.shape
    ranks = torch.arange(topk, device=start_BK.device).expand(batch, pair_BSPC.shape[1] + 1, topk)
    return exact_path(start_BK, pair_BSPC, ranks, start_BK, start_BK, start_BK)[0]


def median(samples: Sequence[float]) -> Numbers:
    """Median with its distribution-free 95 % interval: the order statistics that a binomial puts around it."""
    ordered, n = sorted(samples), len(samples)
    reach = 0.98 * math.sqrt(n)  # 1.96 standard deviations of Binomial(n, 1/2)
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return statistics.median(ordered), ordered[low], ordered[high]


def clock(call: Call, calls: int, device: str) -> float:
    """Milliseconds a call, over ``calls`` in a row; on a GPU by its own events."""
    if device == "cpu":
        began = time.perf_counter()
        for _ in range(calls):
            call()
        return 1000 * (time.perf_counter() - began) / calls
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / calls


def captured(arm: Call) -> Call:
    """A CUDA graph of one call. RuntimeError where an operation cannot be captured."""
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries allocate their workspaces
            arm()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        arm()
    return graph.replay


def measure(geometry: str, arms: Mapping[str, Call], way: str, device: str, size: tuple[int, int, int]) -> list[Line]:
    """A line for each of ``arms``; ``size`` is (rounds, calls a round, calls to warm up)."""
    rounds, calls, warm = size
    for call in arms.values():
        clock(call, warm, device)
    times = {name: [0.0] * rounds for name in arms}
    for turn in range(rounds):
        for name in list(arms)[:: 1 if turn % 2 else -1]:
            times[name][turn] = clock(arms[name], calls, device)
    control = times["dflash"]
    costs = {name: [a - b for a, b in zip(own, control, strict=True)] for name, own in times.items()}
    return [
        Line(
            geometry=geometry,
            arm=name,
            way=way,
            time_ms=median(own),
            cost_ms=median(costs[name]) if name != "dflash" else None,
            paper_ms=printed(geometry, name),
        )
        for name, own in times.items()
    ]


def printed(geometry: str, arm: str) -> float | None:
    return PAPER[arm][list(GEOMETRIES).index(geometry)] if geometry in GEOMETRIES and arm in PAPER else None


def bench(device: str, small: bool, size: tuple[int, int, int]) -> list[Line]:
    """Every arm at every geometry, eager, and captured on a GPU; what cannot be captured is a line that says why."""
    lines: list[Line] = []
    torch.manual_seed(0)
    lilicorr.best_path = kernel_path
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    try:
        for name, geometry in (SMALL if small else GEOMETRIES).items():
            with torch.inference_mode(), torch.device(device):
                sizes = (geometry["vocab_size"], geometry["hidden_size"])
                shared = (torch.randn(sizes), torch.randn(sizes))
                arms: dict[str, Call] = {arm: Arm(arm, geometry, small, shared) for arm in ARMS}
                lines += measure(name, arms, "eager", device, size)
                if device == "cuda":
                    graphs, failed = capture_all(name, arms)
                    lines += [*measure(name, graphs, "captured", device, size), *failed]
    finally:
        torch.set_default_dtype(torch.float32)
        lilicorr.best_path = best_path
    return lines


def capture_all(geometry: str, arms: Mapping[str, Call]) -> tuple[dict[str, Call], list[Line]]:
    """The graphs, and a line without numbers for each arm that cannot be captured."""
    graphs, failed = {}, []
    for arm, call in arms.items():
        try:
            graphs[arm] = captured(call)
        except RuntimeError as error:
            note = f"not captured: {str(error).splitlines()[0]}"
            nothing = {"time_ms": None, "cost_ms": None, "paper_ms": None}
            failed.append(Line(geometry=geometry, arm=arm, way="captured", note=note, **nothing))
    return graphs, failed


def written(lines: Sequence[Line], device: str) -> str:
    """A Markdown table."""
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    about = f"{name}, torch {torch.__version__}: one block, 15 drafted, greedy, random weights, our reference heads"
    columns = "| geometry | arm | way | time, ms | cost over DFlash, ms | paper, ms |"
    return "\n".join([about, "", columns, "|---|---|---|---|---|---|", *map(_row, lines)])


def _row(line: Line) -> str:
    paper = "" if line.paper_ms is None else f"{line.paper_ms:.3f}"
    cells = (line.geometry, line.arm, line.way, _shown(line.time_ms), line.note or _shown(line.cost_ms), paper)
    return f"| {' | '.join(cells)} |"


def _shown(numbers: Numbers | None) -> str:
    if numbers is None:
        return ""
    value, low, high = numbers
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="small sizes on the CPU, in seconds")
    parser.add_argument("--json", type=Path, help="also write the lines there")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and not options.small else "cpu"
    lines = bench(device, device == "cpu", (ROUNDS, CALLS, WARM) if device == "cuda" else (5, 2, 1))
    print(written(lines, device))
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1))


if __name__ == "__main__":
    main()
