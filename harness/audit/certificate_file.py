"""The file of a certificate: where it lies, what it must hold, whom it speaks for, how it is replaced.

A certificate speaks for the weights, versions, device, precision and added server arguments that it names, by the rules
of this audit; for nothing else.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.audit.certificate import RULES, Certificate
from harness.audit.page import page
from harness.schema.comparable import CERTIFIED
from harness.schema.file_name import file_name
from sglang_specbench.atomic_file import write_text
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_object

REMEDY = "move it away and run specbench audit again"

# what readers of the file rely on
KINDS = {
    "arm": str, "target_digest": str, "draft_digest": str, "versions": dict, "attestation": dict, "verdict": str,
    "date": str, "samples": int, "server": list, "rules": int,
}  # fmt: skip


def path(folder: Path, target: str, arm: str, proposal: str, device: str) -> Path:
    """Where the certificate of an arm lies."""
    return folder / f"{file_name(target)}-{arm}-{proposal}-{device}.json"


def load(place: Path) -> dict[str, Any]:
    """A certificate's JSON; `UserError` if the file is not one. By other rules it holds whatever it held."""
    try:
        found = read_object(place, REMEDY)
    except UserError as error:
        raise UserError(f"{place}: not a certificate: {error.message}", REMEDY) from None
    wrong = [] if isinstance(found.get("verdict"), str) else ["verdict"]
    if not wrong and found.get("rules", 1) != RULES:
        return {"rules": 1, **found}  # it speaks for nothing now
    wrong += [key for key, kind in KINDS.items() if not isinstance(found.get(key), kind)]
    wrong += [key for key in ("versions", "server") if not wrong and not all(isinstance(x, str) for x in found[key])]
    wrong += [] if all(map(_is_earlier, _listed(found.get("earlier")))) else ["earlier"]
    if wrong:
        raise UserError(f"{place}: not a certificate: {wrong[0]} is missing or of another type", REMEDY)
    return found


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _is_earlier(value: Any) -> bool:
    """What a page says of an audit that was replaced."""
    return isinstance(value, dict) and value.keys() >= {"date", "samples", "verdict"}


def load_all(folder: Path) -> list[dict[str, Any]]:
    """Every certificate of ``folder``, by name; none if there is no such folder."""
    return [load(path) for path in sorted(folder.glob("*.json"))]


def speaks_for(found: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Is a certificate about a cell with these values: those fields that `comparable` marks as certified."""
    if found["rules"] != RULES:
        return False
    versions = tuple(f"{name} {version}" for name, version in found["versions"].items())
    own = {**found, **{key: found["attestation"].get(key) for key in ("device", "dtype")}, "versions": versions}
    return all(_same(own[key], cell[key]) for key in CERTIFIED)


def _same(own: Any, other: Any) -> bool:
    """Equal; lists in any order."""
    listed = isinstance(own, list | tuple)
    return bool(sorted(own) == sorted(other) if listed else own == other)


def write(certificate: Certificate, place: Path) -> Certificate:
    """Write the page and the JSON, each whole or not at all; what stood there is remembered in ``earlier``."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_file():
        old = load(place)
        kept = ("rules", "target_digest", "draft_digest", "versions")
        if all(old.get(key) == getattr(certificate, key) for key in kept):
            last = {key: old[key] for key in ("date", "samples", "verdict")}
            certificate = replace(certificate, earlier=(*old.get("earlier", ()), last))
    write_text(place.with_suffix(".md"), page(certificate))
    write_text(place, json.dumps(certificate.to_json(), indent=1, allow_nan=False) + "\n")
    return certificate
