"""One look for all figures: colours that colour-blind readers and grey printers can tell apart, and the same bytes
each time a figure is drawn.

Colour, marker and dashes of an arm stand in its row of ``ARMS``; colour is never the only cue.
"""

import textwrap
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from harness.tables.build import UNAUDITED
from sglang_specbench.arms import ARMS, Look, word_of

_marked: ContextVar[Collection[str]] = ContextVar("marked", default=())  # arms that carry a dagger in this drawing
WIDTH = 6.75  # inches: a two-column page
FORMATS = ("svg", "pdf", "png")
# arms whose row has no look take one of these, in the order of the table
SPARE = (
    Look("#7B4EA3", "h", (3, 2)),
    Look("#8C6D31", "<", (5, 1, 1, 1)),
    Look("#B0305C", ">", (2, 1)),
    Look("#3D7A7A", "p", (6, 1)),
    Look("#5B6C8F", "d", (1, 2)),
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
    return _look(arm).colour


def screen_colour(arm: str) -> str:
    """The arm's colour where the page may be dark."""
    return SCREEN.get(arm, colour(arm))


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
    """The arm's printed name, with a dagger if it is unaudited."""
    printed = ARMS[arm].title if arm in ARMS else arm
    return f"{printed} {UNAUDITED}" if arm in _marked.get() else printed


def _look(arm: str) -> Look:
    own = ARMS[arm].look if arm in ARMS and not word_of(arm) else None
    plain = [name for name, row in ARMS.items() if row.look is None]
    place = plain.index(arm) if arm in plain else zlib.crc32(arm.encode())
    return own or SPARE[place % len(SPARE)]


@contextmanager
def look(unaudited: Collection[str] = ()) -> Iterator[None]:
    """The style, for the time of drawing; arms that are ``unaudited`` carry a dagger."""
    token = _marked.set(unaudited)
    try:
        with matplotlib.rc_context(RC):
            yield
    finally:
        _marked.reset(token)


def footnotes(figure: Figure, notes: Sequence[str]) -> None:
    """Words under the drawing: what its numbers lack, what a dagger means."""
    if not notes:
        return
    figure.canvas.draw()
    lowest = figure.get_tightbbox().y0 / figure.get_figheight()
    lines = [line for note in notes for line in textwrap.wrap(note, int(18 * figure.get_figwidth()))]
    text = "\n".join(lines).replace("$", r"\$")
    figure.text(0.01, min(lowest, 0.0) - 0.02, text, va="top", fontsize=6)


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
