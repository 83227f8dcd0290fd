"""Tables to Markdown, LaTeX (booktabs), CSV, HTML and the terminal: the only place where a number becomes text.

A hole prints as a dash with the number of its reason, and the reasons follow the table. Words from a run (names,
reasons) are escaped in every format that has markup.
"""

from harness.tables.html import page
from harness.tables.latex import latex
from harness.tables.long_csv import long_csv
from harness.tables.markdown import markdown
from harness.tables.terminal import terminal

__all__ = ["FORMATS", "latex", "long_csv", "markdown", "page", "terminal"]

# name -> renderer and file ending
FORMATS = {
    "md": (markdown, "md"),
    "tex": (latex, "tex"),
    "csv": (long_csv, "csv"),
    "html": (page, "html"),
    "term": (terminal, "txt"),
}
