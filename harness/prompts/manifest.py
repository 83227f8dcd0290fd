"""A prompt set's manifest: where its rows are from, under which licence, and in which words they are sent.

One TOML file per set in ``harness/prompts/sets/`` (or in a ``--data-dir``, for a set of one's own). Everything that
changes what a number on the set means (wording, turns, output cap, subset rule) stands here and is covered by
``version``, which is raised with any such change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the rows are published."""

    hub: str = ""  # data set id on the Hugging Face hub
    config: str = ""
    split: str = ""
    revision: str = ""  # "" = none is pinned
    files: tuple[str, ...] = ()  # read these files of the hub repository rather than a config's split
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """From a raw row to the user's turns. Rows with ``turns`` or ``messages`` are taken as they are."""

    template: str = ""  # string.Template over the row's fields
    optional: str = ""  # a field that may be empty; then ``template_without`` is used
    template_without: str = ""
    turns: str = ""  # a field that holds the list of turns, instead of a template
    id: str = "${id}"
    category: str = ""  # a field


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One prompt set, without its rows."""

    name: str
    title: str
    version: int
    licence: str
    max_new_tokens: int
    rows: int = 0  # 0: not fixed
    sha256: str = ""  # of the turns of all rows (`prompt_set.turns_digest`); "" = not known
    accept: bool = False  # the licence must be accepted before a download
    ignore_eos: bool = False
    synthetic: bool = False  # a stand-in: its numbers are never the real set's
    subset: Literal["front", "round_robin"] = "front"  # which rows a limited cell takes
    categories: tuple[str, ...] = ()  # all there may be; () = any
    files: tuple[tuple[str, ...], ...] = ()  # alternatives, each a list of parts without suffix; () = the name
    add: str = ""  # how a user gets it, where `specbench data fetch` is not the way
    note: str = ""
    source: Source = field(default_factory=Source)
    wording: Wording = field(default_factory=Wording)

    @property
    def how_to_add(self) -> str:
        """The command that makes a missing set available."""
        return self.add or f"specbench data fetch {self.name}" + (" --accept-licence" if self.accept else "")


def folders(data_dirs: Sequence[Path] = ()) -> list[Path]:
    """Where manifests are looked for: the user's folders, then the shipped one."""
    return [*data_dirs, Path(str(resources.files("harness.prompts") / "sets"))]


def known(data_dirs: Sequence[Path] = ()) -> dict[str, Path]:
    """Manifest files by set name; an earlier folder wins."""
    found: dict[str, Path] = {}
    for folder in folders(data_dirs):
        for path in sorted(folder.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found


def manifest(name: str, data_dirs: Sequence[Path] = ()) -> Manifest:
    """The manifest of ``name``; `UserError` with the nearest name if there is none."""
    files = known(data_dirs)
    if name not in files:
        raise UserError(f"unknown prompt set {name!r}", near_name(name, files))
    path = files[name]
    found = from_dict(Manifest, load_toml(path), str(path))
    if found.name != name:
        raise UserError(f"{path}: name {found.name!r} is not the file's", f'write name = "{name}"')
    return found
