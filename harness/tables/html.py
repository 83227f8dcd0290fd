"""Tables as HTML fragments: everything escaped, interval and method of a number on hover."""

import jinja2

from harness.stats.estimate import Estimate, Missing
from harness.tables.cell_text import footnotes, groups, sections, texts
from harness.tables.table import Table, TableCell

PAGE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<table class="specbench" id="table-{{ table.name }}">
<caption>{{ table.title }}</caption>
<thead>
{% if grouped %}
<tr><td></td>{% for name, width in groups %}<th colspan="{{ width }}" scope="colgroup">{{ name }}</th>{% endfor %}</tr>
{% endif %}
<tr><th scope="col">{{ table.stub }}</th>{% for c in table.columns %}<th scope="col">{{ c.name }}</th>{% endfor %}</tr>
</thead>
{% for section, rows in sections %}
<tbody>
{% if section %}
<tr><th colspan="{{ table.columns | length + 1 }}" scope="rowgroup">{{ section }}</th></tr>
{% endif %}
{% for row, cells in rows %}
<tr><th scope="row">{{ row.label }}</th>\
{% for cell, text in cells %}<td class="{{ cell.mark }}" title="{{ hover(cell) }}">{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
{% for note in notes %}
<p class="note">{{ note }}</p>
{% endfor %}
""")


def page(table: Table) -> str:
    """An HTML fragment; classes ``best`` and ``tie`` mark cells, and a number's interval and method are its title."""
    blocks = [
        (name, [(row, list(zip(row.cells, texts(table, row), strict=True))) for row in rows])
        for name, rows in sections(table)
    ]
    runs = groups(table)
    grouped = any(name for name, _ in runs)
    return (
        PAGE.render(table=table, groups=runs, grouped=grouped, sections=blocks, notes=footnotes(table), hover=_hover)
        + "\n"
    )


def _hover(cell: TableCell) -> str:
    match cell.content:
        case Estimate(_, low, high, n, method):
            interval = f"[{low:.4g}, {high:.4g}] " if low is not None and high is not None else ""
            return f"{interval}{f'n={n} ' if n else ''}{method}"
        case Missing(reason):
            return reason
        case _:
            return ""
