"""The tensors of Toy's correction: name -> shape."""

from typing import Any

from drafters.model.tensor_shapes import Shape


def head_tensors(config: dict[str, Any]) -> dict[str, Shape]:
    hidden, rank = config["hidden_size"], config["dflash_config"]["toy_rank"]
    return {"toy_down.weight": (rank, hidden), "toy_up.weight": (hidden, rank)}
