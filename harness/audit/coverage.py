"""Which arms may stand in a table without a dagger: those with a certificate for just what the run measured.

A certificate is a JSON file in the folder ``certificates`` beside the run or beside its parent
(``results/certificates`` for ``results/runs/demo``), or in ``results/certificates`` of the working folder.
`certificate_file.speaks_for` says what it must agree in with a cell. An arm's name says how it proposes at
temperature 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.audit.certificate_file import load_all, speaks_for
from harness.schema.comparable import CERTIFIED

PASSED = "pass"


def read(runs: Iterable[Path]) -> list[dict[str, Any]]:
    """Every certificate in these folders; `UserError` if a file there is none."""
    beside = [f / "certificates" for run in runs for f in run.resolve().parents[:2]]
    folders = dict.fromkeys([*beside, Path("results/certificates").resolve()])
    return [certificate for folder in folders for certificate in load_all(folder)]


def audit_mark(certificates: Sequence[dict[str, Any]], cell: Mapping[str, Any]) -> str:
    """Empty if the newest certificate that speaks for ``cell`` passed; else its verdict, or ``unaudited``."""
    fitting = [c for c in certificates if speaks_for(c, cell)]
    if not fitting:
        return "unaudited"
    verdict = str(max(fitting, key=lambda c: str(c["date"]))["verdict"])
    return "" if verdict == PASSED else verdict


def unaudited(cells: pd.DataFrame, certificates: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Arms of a run of which some weights lack a passed certificate, and the worst verdict; AR is its own reference."""
    found = cells.loc[cells.arm != "ar", list(CERTIFIED)].astype({"versions": object, "server": object})
    found = found.assign(versions=found.versions.map(tuple), server=found.server.map(tuple)).drop_duplicates()
    marks = [(str(cell["arm"]), audit_mark(certificates, cell)) for cell in found.to_dict("records")]
    worst_last = sorted(marks, key=lambda one: (one[1] == "fail", one[1] == "inconclusive"))
    return {arm: mark for arm, mark in worst_last if mark}
