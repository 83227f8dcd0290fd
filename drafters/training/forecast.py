"""What a training run will take, worked out from configs alone: memory, disk, steps, and hours on this machine.

Bytes of a trained number: 4 for the fp32 weight, 8 for AdamW's moments, for every arm; 4 for its gradient, which only
one arm holds at a time. Activations and logits come on top and are not forecast. Hours divide the matrix products by 40
per cent of a rate measured here, a guess that real runs correct (``tokens_per_s`` in metrics.jsonl).
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from drafters.corpus.samples import Sample
from drafters.model.config import DrafterConfig
from drafters.model.registry import load_recipe
from drafters.model.tensor_shapes import expected
from drafters.training.contract import Contract
from sglang_specbench.checkpoint import read_config

_EFFICIENCY = 0.4  # of the measured rate of one large product
_GB = 1e9


def forecast(
    contract: Contract, target: Path, samples: Sequence[Sample], recipes: Path | None, mask: int, *, one_by_one: bool
) -> str:
    """Lines of text; ``target`` is a folder of which config.json and file sizes are read."""
    config = read_config(target / "config.json")
    sizes = {arm: _parameters(arm, config, recipes, mask) for arm in contract.arms}
    largest, total, steps = max(sizes.values()), sum(sizes.values()), contract.steps(len(samples))
    held = largest if one_by_one else total
    weights = sum(path.stat().st_size for path in target.glob("*.safetensors"))
    lines = [f"{arm}: {count / 1e6:,.1f} M parameters" for arm, count in sizes.items()]
    lines += [
        f"memory of each rank: {(12 * held + 4 * largest + weights) / _GB:,.2f} GB for weights, moments, one arm's "
        f"gradients and the target, activations not counted ({'one arm' if one_by_one else 'all arms'} at a time)",
        f"disk: {(2 * 12 * held + 12 * (total - held) + 4 * total) / _GB:,.2f} GB while a state is written",
        f"steps: {steps:,} of {contract.batch} sequences{' for each arm' if one_by_one else ''}",
        f"hours: about {_hours(contract, config, weights, sizes, samples, one_by_one):,.1f} of one such device",
    ]
    return "\n".join(lines)


def _parameters(arm: str, target: dict[str, Any], recipes: Path | None, mask: int) -> int:
    recipe = load_recipe(arm, recipes / f"{arm}.toml" if recipes else None)
    config = DrafterConfig.from_target(target, arm, mask_token_id=mask, **recipe.model)
    return sum(math.prod(shape) for shape in expected(config.to_json()).values())


def _hours(
    contract: Contract,
    target: dict[str, Any],
    target_bytes: int,
    sizes: dict[str, int],
    samples: Sequence[Sample],
    one_by_one: bool,
) -> float:
    """2 operations a weight and row forwards, 4 backwards; rows of blocks, and the target's head for each."""
    tokens = sum(len(s.ids_S) for s in samples) * contract.epochs
    rows = sum(min(contract.anchors, int(s.loss_S.sum())) for s in samples) * contract.epochs * 16
    head = target["vocab_size"] * target["hidden_size"]
    drafters = sum(6 * size * rows + 6 * head * rows for size in sizes.values())
    passes = len(sizes) if one_by_one else 1
    operations = drafters + passes * 2 * (target_bytes / 2) * tokens  # bf16 files
    return operations / (_EFFICIENCY * _rate(contract.precision)) / 3600


def _rate(precision: str) -> float:
    """Operations a second of a product of 2,048 square matrices on this device."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    one = torch.ones(2048, 2048, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    (one @ one).sum().item()
    started = time.perf_counter()
    for _ in range(3):
        product = one @ one
    product.sum().item()
    return 3 * 2 * 2048**3 / (time.perf_counter() - started)
