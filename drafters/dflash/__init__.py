"""DFlash (arXiv 2602.06036): every slot on its own, the control of all other arms."""

from drafters.dflash.head import Head, Settings
from drafters.dflash.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
