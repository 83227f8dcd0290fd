"""Names from outside as names of files: no separator, no parent folder, and different names stay different."""

from urllib.parse import quote


def file_name(text: str) -> str:
    """``text`` in letters, digits and ``_.-~%``, with every other byte as in a URL; never empty, ``.`` or ``..``."""
    safe = quote(text, safe="")
    return safe.replace(".", "%2E") if safe.strip(".") == "" else safe
