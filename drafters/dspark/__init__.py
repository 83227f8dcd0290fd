"""DSpark (arXiv 2607.05147): a low-rank bias from the previous token, and a confidence for each slot."""

from drafters.dspark.head import Head, Settings
from drafters.dspark.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
