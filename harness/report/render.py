"""The report as terminal text, as Markdown and as an HTML page that needs nothing beside it."""

import re
from importlib.resources import files

import jinja2

from harness.report.page import Report, Section
from harness.tables.cell_text import footnotes, groups, sections, texts
from harness.tables.markdown import markdown as table_markdown
from harness.tables.table import Table
from harness.tables.terminal import terminal as table_terminal

FORMATS = {"term": "txt", "md": "md", "html": "html"}
SPECIAL = re.compile(r"([\\`*_|<>])")
BADGES = {"audited": "good", "reference": "good", "FAILED": "bad", "inconclusive": "warn", "unaudited": "warn"}


def terminal(report: Report) -> str:
    """Plain text; tables as ``specbench tables`` prints them."""
    parts = [f"{report.name}: {report.about}", ""]
    for section in report.sections:
        parts += [section.title.upper(), ""]
        parts += [f"- {line}" for line in section.lines]
        parts += [""] * bool(section.lines)
        parts += [table_terminal(table) for table in section.tables]
    return "\n".join(parts).rstrip() + "\n"


def markdown(report: Report) -> str:
    """Names of a run are escaped."""
    parts = [f"# {_escaped(report.name)}", "", _escaped(report.about), ""]
    for section in report.sections:
        parts += [f"## {_escaped(section.title)}", ""]
        parts += [f"- {_escaped(line)}" for line in section.lines]
        parts += [""] * bool(section.lines)
        parts += [table_markdown(table) for table in section.tables]
    return "\n".join(parts).rstrip() + "\n"


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def html(report: Report) -> str:
    """A whole page, its style inside."""
    style = (files("harness.report") / "templates" / "style.css").read_text(encoding="utf-8")
    return _template("page.html").render(report=report, style=style, body=fragment(report))


def fragment(report: Report) -> str:
    """The sections alone, for a page of someone else's."""
    return "\n".join(section_html(section) for section in report.sections)


def section_html(section: Section) -> str:
    """One section; everything that comes from a run is escaped."""
    return _template("section.html").render(
        section=section, slug=slug(section.title), sections=sections, texts=texts, notes=footnotes, badges=BADGES,
        groups=groups, grouped=_grouped,
    )  # fmt: skip


def _grouped(table: Table) -> bool:
    return any(column.group for column in table.columns)


def slug(text: str) -> str:
    """An id made of a title."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
