"""DFlash has no head: its checkpoint is the backbone's."""

from typing import Any

from drafters.model.tensor_shapes import Shape


def head_tensors(_config: dict[str, Any]) -> dict[str, Shape]:
    return {}
