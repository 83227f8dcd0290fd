"""Toy: DFlash with a low-rank correction of every slot."""

from drafters.toy.head import Head, Settings
from drafters.toy.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
