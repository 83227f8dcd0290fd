"""One look for all figures: colours that colour-blind readers and grey printers can tell apart, and the same bytes
each time a figure is drawn.

Colours are Okabe and Ito's; every arm also has a marker and a dash pattern, so that colour is never the only cue.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from sglang_specbench.arms import ARMS

WIDTH = 6.75  # inches: a two-column page
FORMATS = ("svg", "pdf", "png")
# arm -> colour, marker, dashes
COLOURS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "ar": ("#000000", "x", (1, 1)),
    "dflash": ("#999999", "s", ()),
    "dflash2": ("#E69F00", "o", ()),
    "domino": ("#009E73", "^", (4, 1)),
    "dspark": ("#0072B2", "D", (3, 1, 1, 1)),
    "lilicorr": ("#D55E00", "v", ()),
    "lilicorr-conv": ("#CC79A7", "P", (5, 2)),
    "lilicorr-exact": ("#56B4E9", "*", (1, 1)),
}
# arms that are not above take one of these, always the same one: their number in the arm table decides
SPARE = (
    ("#7B4EA3", "h", (3, 2)),
    ("#8C6D31", "<", (5, 1, 1, 1)),
    ("#B0305C", ">", (2, 1)),
    ("#3D7A7A", "p", (6, 1)),
    ("#5B6C8F", "d", (1, 2)),
)
SCREEN = {"ar": "#6E7B8B", "dflash": "#9A9A9A"}  # black is no colour on a dark page

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
    return _look(arm)[0]


def screen_colour(arm: str) -> str:
    """The arm's colour where the page may be dark."""
    return SCREEN.get(_base(arm), colour(arm))


def _look(arm: str) -> tuple[str, str, tuple[int, ...]]:
    """Colour, marker and dashes; a variant has those of its family, others a spare one."""
    base = _base(arm)
    if base in COLOURS:
        return COLOURS[base]
    names = [name for name in ARMS if _base(name) not in COLOURS]
    place = names.index(arm) if arm in names else zlib.crc32(arm.encode())
    return SPARE[place % len(SPARE)]


def line(arm: str) -> dict[str, object]:
    """Keyword arguments of a line plot for ``arm``."""
    shade, marker, dashes = _look(arm)
    return {"color": shade, "marker": marker, "markersize": 4, "dashes": dashes, "linewidth": 1.2, "label": title(arm)}


def hatch(arm: str) -> str:
    """Bars of an arm that shares its colour with another (``-argmax``, ``-full``) are hatched."""
    return "" if arm in COLOURS else "/////"


def legend(figure: Figure, axes: Iterable[plt.Axes]) -> None:
    """One legend under the figure, of every arm that any of ``axes`` shows."""
    found = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    columns = min(6, len(found))
    figure.legend(found.values(), found.keys(), loc="upper center", ncols=columns, bbox_to_anchor=(0.5, 0.0))


def title(arm: str) -> str:
    """The arm's printed name."""
    return ARMS[arm].title if arm in ARMS else arm


def _base(arm: str) -> str:
    return arm if arm in COLOURS else arm.split("-")[0]


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
