"""Files of JSON lines that we add to while we work: a kill within a line leaves half of it at the end."""

import os
from pathlib import Path

BLOCK = 1 << 16  # bytes


def cut_torn_line(path: Path) -> None:
    """Take the half-written last line off ``path``, if there is one; whole lines are not touched."""
    if not path.is_file():
        return
    with path.open("r+b") as handle:
        end = handle.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK)
            handle.seek(start)
            found = handle.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        handle.truncate(end)
