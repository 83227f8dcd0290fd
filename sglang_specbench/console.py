"""Where text for people is printed. No text is read as markup: names, reasons and logs come from outside.

Every command takes its console from here; a test holds that nothing else makes one.
"""

import os
import sys
from typing import Any

import rich.console


class Console(rich.console.Console):
    """Square brackets and colons stand for themselves; colour is given by ``style=``."""

    def __init__(self, *, goes_on: bool = False, **options: Any) -> None:
        """``goes_on``: a reader that closes the pipe does not end the work."""
        super().__init__(markup=False, highlight=False, emoji=False, **options)
        self._goes_on = goes_on

    def on_broken_pipe(self) -> None:
        """Rich would leave with exit code 1, which means something else."""
        if not self._goes_on:
            raise BrokenPipeError
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        try:
            print("specbench: nobody reads the output any more; the work goes on", file=sys.stderr, flush=True)
        except OSError:  # both went into one pipe
            os.dup2(nowhere, 2)
