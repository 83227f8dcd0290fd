"""What a head sees of its inputs before it is trained: the root mean square of each branch that it adds up.

A head that sums a branch of rms 0.02 with one of 0.5 cannot tell tokens apart at the start, whatever its loss says
(LiLiCorr on a small target whose embedding is small: the reason for ``lilicorr_embedding_scale``). Each head names its
branches in ``BRANCHES``: label -> a module, whose output is measured, or a parameter.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from drafters.model.blocks import TrainingBatch
from drafters.training.trainee import Trainee


def branch_scales(trainee: Trainee, batch: TrainingBatch) -> dict[str, float]:
    """Rms of each branch of the arm's head on ``batch``; empty for a head without any (DFlash)."""
    modules, parameters = dict(trainee.drafter.named_modules()), dict(trainee.drafter.named_parameters())
    scales: dict[str, float] = {}
    hooks = []
    for label, path in trainee.drafter.head.BRANCHES.items():
        if f"head.{path}" in parameters:
            scales[label] = _rms(parameters[f"head.{path}"])
        elif f"head.{path}" in modules:
            hooks.append(modules[f"head.{path}"].register_forward_hook(_recorder(scales, label)))
    trainee.measure(batch)
    for hook in hooks:
        hook.remove()
    return scales


def _recorder(scales: dict[str, float], label: str) -> Callable[..., None]:
    def record(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        scales[label] = _rms(output[0] if isinstance(output, tuple) else output)

    return record


def _rms(values: Tensor) -> float:
    with torch.no_grad():
        return float(values.float().square().mean().sqrt())
