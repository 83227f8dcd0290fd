"""LiLiCorr (arXiv 2608.20530): a lattice of K candidates scored by cosines of contextual vectors."""

from drafters.lilicorr.head import Head, Settings
from drafters.lilicorr.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
