"""DFlash2 (Inco AI; SGLang PR 35371): convolutions in the backbone and a low-rank selector over K candidates."""

from drafters.dflash2.head import Head, Settings
from drafters.dflash2.loss import Weights, loss

__all__ = ["Head", "Settings", "Weights", "loss"]
