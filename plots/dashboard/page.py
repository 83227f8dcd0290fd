"""Pages: one template, escaped text, chart specifications that no string inside them can break out of."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import altair as alt
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

BADGES = {"pass": "good", "ok": "good", "audited": "good", "fail": "bad", "regression": "bad", "FAILED": "bad",
          "inconclusive": "warn", "unaudited": "warn", "invalid": "bad"}  # fmt: skip

LONGEST = 80  # characters of a name that are kept; a digest tells two long ones apart


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a page with a deep link. ``blocks`` are finished HTML: `chart`, `table`, `pre`, or a report's own."""

    id: str
    title: str
    note: str = ""
    blocks: tuple[Markup, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """A file of the site. ``raw`` and ``tail`` are finished HTML before and after the sections; ``doubts`` end it."""

    name: str  # file name
    title: str
    about: str = ""
    raw: Markup = Markup("")  # noqa: RUF009  (immutable)
    sections: tuple[Section, ...] = ()
    tail: Markup = Markup("")  # noqa: RUF009  (immutable)
    doubts: tuple[str, ...] = ()  # what the newest run lacks and which of its arms are unaudited


def slug(text: str) -> str:
    """A name that is safe in a URL, a file name and an id; different texts have different ones."""
    if len(text) <= LONGEST and re.fullmatch(r"[a-z0-9][a-z0-9 -]*", text):
        return text.replace(" ", "_")
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST]
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")


def chart(made: alt.TopLevelMixin, folder: Path, name: str, alt_text: str, data: pd.DataFrame) -> Markup:
    """A chart and its data, which is written to ``folder``/data; ``alt_text`` says to a screen reader what it shows."""
    id_ = slug(name)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    data.to_csv(folder / "data" / f"{id_}.csv", index=False)
    spec = script_safe(made.to_json(indent=None, validate=False))
    return Markup(
        '<figure class="chart-box"><div class="chart" id="chart-{id}" role="img" aria-label="{alt}"></div>'
        '<script type="application/json" class="spec" data-chart="chart-{id}">{spec}</script>'
        '<p class="csv"><a href="data/{id}.csv" download>data of this chart (CSV)</a></p></figure>'
    ).format(id=id_, alt=alt_text, spec=Markup(spec))


def grid(blocks: list[Markup]) -> Markup:
    """Small multiples: as many beside each other as the screen has room for."""
    return Markup('<div class="multiples">{}</div>').format(Markup("").join(blocks))


def card(title: str, value: str, note: str) -> Markup:
    """One number, large."""
    return Markup('<div class="card"><h3>{}</h3><p class="big">{}</p><p class="note">{}</p></div>').format(
        title, value, note
    )


def titled(title: str, note: str, body: Markup) -> Markup:
    """A chart of a grid, with its heading and one line under it."""
    return Markup('<div class="card"><h3>{}</h3>{}<p class="note">{}</p></div>').format(title, body, note)


def table(frame: pd.DataFrame, caption: str = "") -> Markup:
    """Every cell is escaped; verdicts become badges, an empty value a blank."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(c) for c in frame.columns)
    lines = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cell(value, i) for i, value in enumerate(row)))
        for row in frame.itertuples(index=False)
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="plain">{caption}'
        "<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    ).format(
        label=caption or "table",
        caption=Markup("<caption>{}</caption>").format(caption) if caption else "",
        head=head,
        lines=lines,
    )


def _cell(value: object, place: int) -> Markup:
    text = _text(value)
    badge = BADGES.get(text)
    shown = Markup('<span class="badge {}">{}</span>').format(badge, text) if badge else text
    tag = Markup('<th scope="row">{}</th>') if place == 0 else Markup("<td>{}</td>")
    return tag.format(shown)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pre(text: str) -> Markup:
    """A log, as it is."""
    return Markup('<pre tabindex="0">{}</pre>').format(text)


def lines(texts: list[str]) -> Markup:
    """A list of sentences."""
    return Markup('<ul class="lines">{}</ul>').format(Markup("").join(Markup("<li>{}</li>").format(t) for t in texts))


def script_safe(text: str) -> str:
    """JSON inside a script element: ``<`` and line separators are escaped, so that no value can close the element.

    What is no number becomes null: JavaScript's parser takes neither NaN nor Infinity.
    """
    text = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def data_block(id_: str, value: object) -> Markup:
    """JSON for a script of the site."""
    return Markup('<script type="application/json" id="{}">{}</script>').format(
        id_,
        Markup(script_safe(json.dumps(value, allow_nan=False))),
    )


def write(page: Page, navigation: Mapping[str, Mapping[str, str]], folder: Path) -> Path:
    """Render ``page`` into ``folder``; ``navigation`` is group -> text -> href, the group "" without a menu."""
    environment = Environment(
        loader=PackageLoader("plots", "templates"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    blocks = (page.raw, page.tail, *(block for section in page.sections for block in section.blocks))
    charts = any("data-chart" in block for block in blocks)
    text = environment.get_template("page.html").render(page=page, navigation=navigation, charts=charts)
    path = folder / page.name
    path.write_text(text, encoding="utf-8")
    return path


def assets(folder: Path) -> None:
    """Style and scripts that every page shares; the report's style is the site's."""
    report_style = (resources.files("harness.report") / "templates" / "style.css").read_text(encoding="utf-8")
    own = resources.files("plots") / "templates"
    (folder / "style.css").write_text(report_style + (own / "style.css").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("charts.js", "changes.js"):
        (folder / name).write_text((own / name).read_text(encoding="utf-8"), encoding="utf-8")
