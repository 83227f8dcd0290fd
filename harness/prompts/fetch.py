"""Download a prompt set from the hub and keep its prompts as JSONL in the user's cache folder.

The only code of the harness that goes to the network. Rows are kept in their final wording, so that the file says word
for word what is sent.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.prompts.load import cache_dir
from harness.prompts.manifest import Manifest, Source
from harness.prompts.prompt_set import Prompt
from harness.prompts.row import make_prompt
from sglang_specbench.atomic_file import make_folder, write_text
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import LINES_BYTES, json_lines, read_json


def fetch(wanted: Manifest, accepted: bool, out: Path | None = None) -> Path:
    """Download ``wanted`` to ``out`` (default: the cache folder) and return the file.

    Raises `UserError`: exit 2 if its licence must be accepted first or it is not on the hub, exit 5 if the hub fails.
    """
    if not wanted.source.hub:
        raise UserError(f"prompt set {wanted.name!r} has no source on the hub", "it ships with the package")
    if wanted.accept and not accepted:
        raise UserError(f"prompt set {wanted.name!r} is under: {wanted.licence}", "read it, then add --accept-licence")
    try:
        rows = list(hub_rows(wanted.source))
    except Exception as error:  # noqa: BLE001 - three client libraries raise what they like
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise UserError(f"{wanted.source.hub}: download failed: {reason}", "check network and access", 5) from None
    path = (out or cache_dir()) / f"{wanted.name}.jsonl"
    _write(path, wanted, rows)
    return path


def hub_rows(source: Source) -> Iterable[Mapping[str, Any]]:
    """Raw rows of a hub data set: of its files if the manifest names some, else of a config's split."""
    if source.files:
        from huggingface_hub import hf_hub_download

        for name in source.files:
            local = hf_hub_download(source.hub, name, repo_type="dataset", revision=source.revision or None)
            yield from _file_rows(Path(local))
        return
    from datasets import load_dataset

    yield from load_dataset(source.hub, source.config or None, split=source.split, revision=source.revision or None)


def _file_rows(path: Path) -> list[Mapping[str, Any]]:
    if path.suffix == ".json":
        return list(read_json(path, limit=LINES_BYTES))
    return [row for _, row in json_lines(path)]


def _write(path: Path, wanted: Manifest, rows: Iterable[Mapping[str, Any]]) -> None:
    prompts = [make_prompt(wanted, i, row, wanted.source.hub) for i, row in enumerate(rows)]
    lines = [json.dumps(_kept(prompt), ensure_ascii=False) for prompt in prompts]
    make_folder(path.parent, "data fetch: --out")
    write_text(path, "\n".join(lines) + "\n")


def _kept(prompt: Prompt) -> dict[str, Any]:
    system = {"system": prompt.system} if prompt.system else {}
    return {"id": prompt.id, "category": prompt.category, **system, "turns": prompt.turns}
