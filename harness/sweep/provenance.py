"""Where a drafter says it comes from: ``provenance.json`` in its folder, written when it was exported.

No digest of weights covers the file, so what it says is kept in each cell's header as it stood when the run was
planned. A checkpoint from elsewhere has none.
"""

from pathlib import Path
from typing import Any

from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_object

FILE, SCHEMA = "provenance.json", 1
REMEDY = "export the checkpoint again, or delete the file"


def read(folder: Path) -> dict[str, Any]:
    """The object in ``folder``'s file; {} without one. `UserError` if it is none or of another schema."""
    path = folder / FILE
    if not path.exists():
        return {}
    found = read_object(path, REMEDY)
    if found.get("schema") != SCHEMA:
        raise UserError(f"{path}: not an object of schema {SCHEMA}", REMEDY)
    for key in ("contract", "recipe"):
        if not isinstance(found.get(key) or {}, dict):
            raise UserError(f"{path}: {key}: expected an object", REMEDY)
    return found
