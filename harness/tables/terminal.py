"""Tables for the terminal."""

from rich.table import Table as Grid
from rich.text import Text

from harness.tables.cell_text import footnotes, sections, texts
from harness.tables.table import Table
from sglang_specbench.console import Console

WIDTH = 160  # columns of a wide terminal; wider tables wrap inside their cells
STYLE = {"": "", "best": "bold", "tie": "underline"}


def terminal(table: Table) -> str:
    """Aligned text; best in bold and ties underlined if the standard output is a terminal."""
    grid = Grid(title=Text(table.title), title_justify="left", pad_edge=False)
    grid.add_column(Text(table.stub))
    for column in table.columns:
        grid.add_column(Text(f"{column.group}\n{column.name}".strip()), justify="right")
    for section, rows in sections(table):
        if section:
            grid.add_section()
            grid.add_row(Text(section, style="italic"))
        for row in rows:
            cells = zip(row.cells, texts(table, row), strict=True)
            grid.add_row(Text(row.label), *(Text(t, style=STYLE[c.mark]) for c, t in cells))
    console = Console(width=WIDTH)
    with console.capture() as capture:
        console.print(grid, *map(Text, footnotes(table)), sep="\n")
    return capture.get()
