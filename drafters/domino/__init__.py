"""Domino (arXiv 2605.29707): a recurrent prefix state corrects each slot's logits."""

from drafters.domino.head import Head, Settings
from drafters.domino.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
