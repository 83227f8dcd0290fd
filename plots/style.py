"""One look for all figures: colours that colour-blind readers and grey printers can tell apart, and the same bytes
each time a figure is drawn.

Colour, marker and dashes of an arm stand in its row of ``ARMS``; colour is never the only cue.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from sglang_specbench.arms import ARMS, Look

WIDTH = 6.75  # inches: a two-column page
FORMATS = ("svg", "pdf", "png")
GREY = Look("#555555", ".", (2, 2))  # of an arm whose row has no look

RC = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "sglang-specbench",  # element ids are the same in every build
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def colour(arm: str) -> str:
    return _look(arm).colour


def line(arm: str) -> dict[str, object]:
    """Keyword arguments of a line plot for ``arm``."""
    look = _look(arm)
    shape = {"color": look.colour, "marker": look.marker, "dashes": look.dashes}
    return {**shape, "markersize": 4, "linewidth": 1.2, "label": title(arm)}


def hatch(arm: str) -> str:
    """Bars of an arm that shares its look with an earlier row (``-argmax``, ``-full``), or has none, are hatched."""
    first = next((name for name, row in ARMS.items() if row.look and row.look == _look(arm)), None)
    return "" if arm == first else "/////"


def legend(figure: Figure, axes: Iterable[plt.Axes]) -> None:
    """One legend under the figure, of every arm that any of ``axes`` shows."""
    found = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    columns = min(6, len(found))
    figure.legend(found.values(), found.keys(), loc="upper center", ncols=columns, bbox_to_anchor=(0.5, 0.0))


def title(arm: str) -> str:
    """The arm's printed name."""
    return ARMS[arm].title if arm in ARMS else arm


def _look(arm: str) -> Look:
    return (ARMS[arm].look if arm in ARMS else None) or GREY


@contextmanager
def look() -> Iterator[None]:
    """The style, for the time of drawing."""
    with matplotlib.rc_context(RC):
        yield


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name`` in every format, without dates, so that equal data give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in FORMATS:
        path = folder / f"{name}.{kind}"
        dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        figure.savefig(path, bbox_inches="tight", metadata=dateless)
        paths.append(path)
    plt.close(figure)
    return paths
