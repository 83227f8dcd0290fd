"""Which arms may stand in a table without a dagger: those with a certificate for just these weights.

A certificate is a JSON file with the keys ``arm``, ``target_digest``, ``draft_digest``, ``verdict`` and ``date``, in
the folder ``certificates`` beside the run or beside its parent (``results/certificates`` for ``results/runs/demo``).
It is fresh as long as both digests are those of the run.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

PASSED = "pass"


def read(runs: Iterable[Path]) -> list[dict[str, Any]]:
    """Every certificate that stands beside one of the run folders."""
    folders = dict.fromkeys(f / "certificates" for run in runs for f in run.resolve().parents[:2])
    return [
        json.loads(path.read_text(encoding="utf-8")) for folder in folders for path in sorted(folder.glob("*.json"))
    ]


def audit_mark(certificates: Sequence[dict[str, Any]], arm: str, target_digest: str, draft_digest: str) -> str:
    """Empty if the newest certificate for these weights passed; else its verdict, or ``unaudited`` if there is none."""
    wanted = {"arm": arm, "target_digest": target_digest, "draft_digest": draft_digest}
    fitting = [c for c in certificates if all(c.get(k) == v for k, v in wanted.items())]
    if not fitting:
        return "unaudited"
    verdict = str(max(fitting, key=lambda c: str(c["date"]))["verdict"])
    return "" if verdict == PASSED else verdict


def unaudited(cells: pd.DataFrame, certificates: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Arms of a run of which some weights lack a passed certificate; AR is its own reference."""
    keys = cells.loc[cells.arm != "ar", ["arm", "target_digest", "draft_digest"]].drop_duplicates()
    return frozenset(
        str(k.arm) for k in keys.itertuples() if audit_mark(certificates, k.arm, k.target_digest, k.draft_digest)
    )
