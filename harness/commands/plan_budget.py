"""The half of `specbench plan` that says what a plan costs: which sizes, which hardware, which run it is judged by."""

from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from harness.load_results import load_results
from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import USABLE
from harness.speedup_model.roofline import Hardware
from harness.speedup_model.shape import Shape
from harness.sweep.cost import ASSUMES, DEVICES, PlanCost, cost
from harness.sweep.plan import Plan
from sglang_specbench.checkpoint import read_config
from sglang_specbench.config import from_dict
from sglang_specbench.console import Console
from sglang_specbench.device import gpus
from sglang_specbench.errors import UserError

FALLBACK = "h100"  # the paper's, where this machine has none that a preset is for
# a config.json's word -> Shape's
_WORDS = {
    "num_hidden_layers": "layers", "hidden_size": "hidden", "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads", "head_dim": "head_dim", "intermediate_size": "intermediate",
    "vocab_size": "vocabulary",
}  # fmt: skip


def show_budget(plan: Plan, run: str, console: Console) -> None:
    """Hours by devices, memory by arm, disk, the largest allocation, and what all of it assumes."""
    device = plan.cells[0].device
    name, hardware = _hardware(device)
    found = cost(plan, _shapes(plan), hardware, load_results(run) if run else None)
    hours = ", ".join(f"{n}: {_hours(found.hours[n])}" for n in DEVICES)
    console.print(f"budget, devices: hours: {hours}", soft_wrap=True)
    largest, own = found.largest
    console.print(
        f"the largest allocation is {largest}, {_hours(own)} h: no number of devices is faster; split it by seeds, "
        "repeats or targets",
        soft_wrap=True,
    )
    console.print(
        f"times from: {', '.join(f'{text} ({n} cells)' for text, n in found.sources.items())}", soft_wrap=True
    )
    if found.memory:
        console.print(_memory(found, hardware, name))
    console.print(f"disk: {found.download_gb:.1f} GB of models to get, {found.rows_gb:.2f} GB of results")
    for text in ASSUMES:
        console.print(f"assumes: {text}", soft_wrap=True)


def _hours(hours: float) -> str:
    return f"{hours:.2f}" if hours < 10 else f"{hours:,.0f}"


def _memory(found: PlanCost, hardware: Hardware | None, name: str) -> Table:
    room = hardware.memory / 1e9 if hardware else None
    last = f"of {room:.0f} GB ({name})" if room else "sum GB"
    table = Table("target", "arm", "target GB", "drafter GB", "cache GB", last, box=None)
    for m in found.memory:
        fits = "" if room is None or m.total_gb < USABLE * room else ": too large"
        parts = (m.weights_gb, m.drafter_gb, m.cache_gb, m.total_gb)
        *numbers, whole = (f"{part:.1f}" for part in parts)
        table.add_row(m.target, m.arm, *numbers, f"{whole}{fits}")
    return table


def _hardware(device: str) -> tuple[str, Hardware | None]:
    """The preset of this machine's first GPU, the paper's where there is none; None for a CPU."""
    if device == "cpu":
        return "cpu", None
    here = "".join(map(str, gpus()[:1])).lower()
    name = next((n for n in presets.tables("hardware.toml") if n in here), FALLBACK)
    return name, presets.hardware(name)


def _shapes(plan: Plan) -> Mapping[str, Shape]:
    """Target -> sizes: of its folder's config.json, or of the preset that its hub id names; others are left out."""
    found: dict[str, Shape] = {}
    for launch in plan.launches:
        target, source = launch.cells[0].target, launch.target_path
        if target in found:
            continue
        config = Path(source) / "config.json"
        if config.is_file():
            found[target] = _shape(config)
        else:
            name = source.rpartition("/")[2].partition("@")[0]
            try:
                found[target] = presets.shape(name)
            except UserError:
                continue
    return found


def _shape(path: Path) -> Shape:
    """A dense model's sizes."""
    config = read_config(path)
    values = {ours: int(config[word]) for word, ours in _WORDS.items() if isinstance(config.get(word), int)}
    tied = bool(config.get("tie_word_embeddings"))
    return from_dict(Shape, {**values, "source": str(path), "tied": tied}, str(path))
