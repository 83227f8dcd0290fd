"""Which arms may stand in a table without a dagger: those with a certificate for just these weights.

A certificate is a JSON file with the keys ``arm``, ``target_digest``, ``draft_digest``, ``versions``, ``verdict`` and
``date``, in the folder ``certificates`` beside the run or beside its parent (``results/certificates`` for
``results/runs/demo``). It is fresh as long as both digests and the versions of SGLang and specbench are the run's. An
arm's name says how it proposes at temperature 1.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.audit.certificate import load

PASSED = "pass"


def read(runs: Iterable[Path]) -> list[dict[str, Any]]:
    """Every certificate that stands beside one of the run folders; `UserError` if a file there is none."""
    folders = dict.fromkeys(f / "certificates" for run in runs for f in run.resolve().parents[:2])
    return [load(path) for folder in folders for path in sorted(folder.glob("*.json"))]


def audit_mark(
    certificates: Sequence[dict[str, Any]], arm: str, target_digest: str, draft_digest: str, versions: Sequence[str]
) -> str:
    """Empty if the newest certificate for these weights and versions passed; else its verdict, or ``unaudited``."""
    wanted = {"arm": arm, "target_digest": target_digest, "draft_digest": draft_digest}
    fitting = [
        c
        for c in certificates
        if all(c.get(k) == v for k, v in wanted.items())
        and {f"{name} {v}" for name, v in c["versions"].items()} == set(versions)
    ]
    if not fitting:
        return "unaudited"
    verdict = str(max(fitting, key=lambda c: str(c["date"]))["verdict"])
    return "" if verdict == PASSED else verdict


def unaudited(cells: pd.DataFrame, certificates: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Arms of a run of which some weights lack a passed certificate; AR is its own reference."""
    keys = cells.loc[cells.arm != "ar", ["arm", "target_digest", "draft_digest", "versions"]]
    keys = keys.assign(versions=keys.versions.map(tuple)).drop_duplicates()
    return frozenset(str(k[0]) for k in keys.itertuples(index=False) if audit_mark(certificates, *k))
