"""Names of models, as every command and every sweep takes them: where the files lie, and their digest.

A source is one of
  ``mini:NAME``        shipped with the package, under drafters/mini;
  ``trained:NAME``     what `specbench export` wrote to ``checkpoints/NAME`` of the working folder; may come later;
  ``ORG/NAME[@REV]``   a hub id, unless a folder of that name exists; may be downloaded later;
  anything else        a folder, which must be there.
Nothing is downloaded here.
"""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from sglang_specbench.digest import weights_digest
from sglang_specbench.errors import UserError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(@[\w./-]+)?")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A resolved source."""

    source: str
    folder: Path | None  # None: not here yet
    digest: str  # sglang_specbench.digest.weights_digest; "hub:ID@REVISION" or "trained:NAME" while not here
    where: str = ""  # file and key that name it
    fetch: str = ""  # the command that downloads or makes it; "" when it is here

    @property
    def path(self) -> str:
        """What a server is given: the folder, or the source while there is none."""
        return str(self.folder or self.source)

    def require(self) -> Path:
        """Its folder; `UserError` naming file, key and both remedies while there is none."""
        if self.folder is None:
            hint = f"no such folder either: correct the path, or get the model: {self.fetch}"
            raise UserError(f"{self.where}: {self.source!r} is not on this machine", hint)
        return self.folder


def resolve(source: str, where: str) -> Model:
    """Folder and digest of ``source``; `UserError` (naming ``where``) if a folder or mini model is missing."""
    found = _look_up(source, where)
    if found.folder is None or (found.fetch and not any(found.folder.glob("*.safetensors"))):
        return Model(source=source, folder=None, digest=found.placeholder, where=where, fetch=found.fetch)
    return Model(source=source, folder=found.folder, digest=weights_digest(found.folder), where=where)


def folder_of(source: str, where: str, weights: bool = True) -> Path:
    """The folder of ``source``, which must be here: nothing is hashed. ``weights``: a whole model, not a tokenizer.

    `UserError` naming ``where`` and the command that downloads or makes it.
    """
    found = _look_up(source, where)
    if found.folder is None or not found.folder.is_dir():
        return Model(source=source, folder=None, digest="", where=where, fetch=found.fetch).require()
    if weights and not (found.folder / "config.json").is_file():
        raise UserError(f"{where}: {source}: no config.json there", "name the folder of a model")
    if weights and not any(found.folder.glob("*.safetensors")):
        raise UserError(f"{where}: {source}: no *.safetensors there", found.fetch or "export the checkpoint there")
    return found.folder


def config_folder(source: str, where: str) -> Path:
    """A folder that holds the config.json of ``source``, and perhaps nothing else; `UserError` with the remedy."""
    found = _look_up(source, where)
    if found.folder is None or not (found.folder / "config.json").is_file():
        fetch = f"{found.fetch} config.json" if found.fetch.startswith("hf ") else found.fetch
        raise UserError(f"{where}: {source!r}: no config.json on this machine", fetch or "name the folder of a model")
    return found.folder


@dataclass(frozen=True, kw_only=True)
class _Found:
    folder: Path | None
    placeholder: str = ""  # of a digest while the model is not here
    fetch: str = ""  # "": it can only be a folder, which is here


def _look_up(source: str, where: str) -> _Found:
    kind, _, name = source.partition(":")
    if kind == "mini":
        return _here(source, mini_folder() / name, where, f"the mini models are {', '.join(_mini_names())}")
    if kind == "trained":
        folder = Path("checkpoints") / name
        return _Found(folder=folder, placeholder=source, fetch=f"specbench train, then specbench export to {folder}")
    folder = Path(source).expanduser()
    if folder.is_dir() or not _HUB_ID.fullmatch(source):
        return _here(source, folder, where, "check the path, or export the checkpoint there")
    repository, _, revision = source.partition("@")
    return _Found(
        folder=_downloaded(repository, revision),
        placeholder=f"hub:{repository}@{revision or 'main'}",
        fetch=f"hf download {repository}" + (f" --revision {revision}" if revision else ""),
    )


def mini_folder() -> Path:
    """The folder of the shipped models, found without importing torch."""
    spec = importlib.util.find_spec("drafters")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("the package `drafters` is not installed", "install sglang-specbench again")
    return Path(spec.submodule_search_locations[0]) / "mini"


def _mini_names() -> list[str]:
    return sorted(path.parent.name for path in mini_folder().glob("*/config.json"))


def _here(source: str, folder: Path, where: str, hint: str) -> _Found:
    if not folder.is_dir():
        raise UserError(f"{where}: {source!r}: no folder {folder}", hint)
    return _Found(folder=folder)


def _downloaded(repository: str, revision: str) -> Path | None:
    """The snapshot folder of a hub id in the hub's cache, laid out as huggingface_hub documents it.

    Its own look-up function imports an HTTP client: a second of start-up for a path.
    """
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"
    reference = folder / "refs" / (revision or "main")
    commit = reference.read_text().strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None
