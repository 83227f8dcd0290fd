"""Pages: one template, escaped text, chart specifications that no string inside them can break out of."""

import hashlib
import html
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

LONGEST = 80  # characters of a name that are kept; a digest tells two long ones apart


@dataclass(frozen=True, kw_only=True)
class Section:
    """One block of a page: a chart (with its data as CSV), a table, or preformatted text. ``id`` is its deep link."""

    id: str
    title: str
    note: str = ""
    spec: str = ""  # Vega-Lite JSON, made safe for a script element
    csv: str = ""  # link to the data behind the chart
    table: pd.DataFrame | None = None
    links: dict[str, str] = field(default_factory=dict)  # text -> href, shown as a list
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A file of the site."""

    name: str  # file name
    title: str
    sections: tuple[Section, ...]


def slug(text: str) -> str:
    """A name that is safe in a URL, a file name and an id; different texts have different ones, spaces aside."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST]
    return (
        plain
        if plain == text.replace(" ", "-")
        else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
    )


def chart_section(chart: alt.TopLevelMixin, folder: Path, title: str, data: pd.DataFrame, note: str = "") -> Section:
    """A chart section; ``data`` is written to ``folder``/data beside it."""
    name = slug(title)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    data.to_csv(folder / "data" / f"{name}.csv", index=False)
    return Section(
        id=name,
        title=title,
        note=note,
        spec=script_safe(chart.to_json(indent=None, validate=False)),
        csv=f"data/{name}.csv",
    )


def script_safe(text: str) -> str:
    """JSON inside a script element: ``<`` and line separators are escaped, so that no value can close the element.

    What is no number becomes null: JavaScript's parser takes neither NaN nor Infinity.
    """
    text = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def write(page: Page, navigation: dict[str, str], folder: Path) -> Path:
    """Render ``page`` into ``folder``."""
    environment = Environment(
        loader=PackageLoader("plots", "templates"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    text = environment.get_template("page.html").render(page=page, navigation=navigation, table=_table)
    path = folder / page.name
    path.write_text(text, encoding="utf-8")
    return path


def _table(frame: pd.DataFrame) -> str:
    """An HTML table; pandas escapes every cell, we escape the headings."""
    renamed = frame.rename(columns=lambda c: html.escape(str(c), quote=True))
    return str(renamed.to_html(index=False, border=0, escape=True, na_rep="", float_format=lambda v: f"{v:.4g}"))
