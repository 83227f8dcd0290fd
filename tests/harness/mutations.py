"""Everything that can happen to one cell of a finished run, one mutation at a time.

A mutation changes a run folder in place and says what a reader must name if its numbers change. Cells that were
*measured otherwise* have rows, digest and name that belong to them: only their setting is another one.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.schema.cell import Cell
from harness.schema.comparable import ATTESTATION, ENVIRONMENT
from harness.schema.header import Header
from harness.store import cell_file, row_checks
from harness.store import run as store
from tests import synthetic_run as synthetic

SEEN = {"environment": dict.fromkeys(ENVIRONMENT, "x"), "attestation": dict.fromkeys(ATTESTATION, "x") | {"window": 16}}
OTHER = {int: 77, float: 0.5, str: "other", bool: True, tuple: ("--other",), dict: {"other": 1}, type(None): 1.0}
# another value that rows can still belong to
FITTING = {"prompts": 7, "max_new_tokens": 4095, "concurrency": 4, "arm": "domino", "prompt_set": "mbpp", "replica": 2}


@dataclass(frozen=True)
class Mutation:
    """``named`` are words of which a reader must say one, unless every number is that of the whole run."""

    kind: str
    what: str
    change: Callable[[Path], None]
    named: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def made(cells, seen=SEEN, hashed="h"):
    """Header and rows of each cell, as a server that attests would give them."""
    for header, rows in synthetic.run(cells):
        ran = [replace(row, prompt_hash=f"{hashed}{row.index}-{row.turn}", finish_reason="length") for row in rows]
        digest = row_checks.prompts_digest(cell_file.as_table(ran))
        yield replace(header, **seen, prompts_digest=digest), ran


def mutations(cells: list[Cell], edited: list[Cell]) -> Iterator[Mutation]:
    """Of every one of ``cells`` what happens to files; of those ``edited`` what happens inside them."""
    for cell in cells:
        yield from _of_files(cell, next(c for c in cells if c.arm != cell.arm))
    for cell in edited:
        yield from _of_rows(cell)
        yield from _of_header(cell)
        yield from _measured_otherwise(cell)
    yield from _of_many(cells)


def _path(folder: Path, cell: Cell) -> Path:
    return folder / "cells" / f"{cell.id}.parquet"


def _of_files(cell: Cell, other: Cell) -> Iterator[Mutation]:
    def move(name: str) -> Callable[[Path], None]:
        return lambda folder: _path(folder, cell).rename(folder / "cells" / name) and None

    def copy(name: str) -> Callable[[Path], None]:
        return lambda folder: shutil.copyfile(_path(folder, cell), folder / "cells" / name) and None

    def cut(share: float, fewer: int = 0) -> Callable[[Path], None]:
        def change(folder: Path) -> None:
            data = _path(folder, cell).read_bytes()
            _path(folder, cell).write_bytes(data[: int(len(data) * share) - fewer])

        return change

    def named(*more: str) -> tuple[str, ...]:
        return (cell.id, f"{cell.target}/{cell.arm}", *more)

    yield Mutation("removed", cell.label, lambda folder: _path(folder, cell).unlink(), named())
    yield Mutation("renamed", cell.label, move("0123456789abcdef.parquet"), named("0123456789abcdef"))
    yield Mutation("renamed away", cell.label, move(f"{cell.id}.parquet.bak"), named())
    yield Mutation("renamed hidden", cell.label, move(f".{cell.id}.parquet"), named())
    yield Mutation("renamed over another", cell.label, move(f"{other.id}.parquet"), named(other.id))
    yield Mutation("duplicated", cell.label, copy("0123456789abcdef.parquet"), named("0123456789abcdef"))
    yield Mutation("copied over another", cell.label, copy(f"{other.id}.parquet"), named(other.id))
    yield Mutation("truncated", cell.label, cut(0.5), named())
    yield Mutation("truncated by 8 bytes", cell.label, cut(1, fewer=8), named())
    yield Mutation("emptied", cell.label, cut(0), named())


def _rewrite(folder: Path, cell: Cell, change: Callable[[pa.Table], pa.Table]) -> None:
    """The file as another program would write it: metadata kept."""
    path = _path(folder, cell)
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def _edit(name: str, place: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        column, kind = table[name].to_pylist(), table.schema.field(name).type
        fresh = {pa.string(): "x", pa.float64(): 0.5}.get(kind, [1] if pa.types.is_list(kind) else 1)
        old = column[place]
        column[place] = fresh if old is None else [*old, 1] if isinstance(old, list) else old + fresh
        return table.set_column(table.column_names.index(name), name, pa.array(column, type=kind))

    return change


def _of_rows(cell: Cell) -> Iterator[Mutation]:
    for name in cell_file.SCHEMA.names:
        for place in (0, -1):
            edit = _edit(name, place)
            yield Mutation(
                "edited column", f"{name}[{place}] of {cell.label}",
                lambda folder, edit=edit: _rewrite(folder, cell, edit), (cell.id,),
            )  # fmt: skip
    changes: dict[str, Callable[[pa.Table], pa.Table]] = {
        "first row deleted": lambda t: t.slice(1),
        "last row deleted": lambda t: t.slice(0, t.num_rows - 1),
        "half of the rows deleted": lambda t: t.slice(0, t.num_rows // 2),
        "all rows deleted": lambda t: t.slice(0, 0),
        "rows doubled": lambda t: pa.concat_tables([t, t]),
        "last row doubled": lambda t: pa.concat_tables([t, t.slice(t.num_rows - 1)]),
        "rows shuffled": lambda t: t.take(list(range(t.num_rows))[::-1]),
    }
    for what, change in changes.items():
        yield Mutation(
            "rows", f"{what} of {cell.label}", lambda f, change=change: _rewrite(f, cell, change), (cell.id,)
        )


def _of_header(cell: Cell) -> Iterator[Mutation]:
    def edit(change: Callable[[Header], Header]) -> Callable[[Path], None]:
        def rewrite(folder: Path) -> None:
            path = _path(folder, cell)
            table = pq.read_table(path)
            text = change(store.read_header(path)).to_json().encode()
            pq.write_table(table.replace_schema_metadata({**table.schema.metadata, cell_file.KEY: text}), path)

        return rewrite

    def other(value: object) -> object:
        return not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else OTHER[type(value)]

    for field in fields(Header):
        if field.name not in ("cell", "outcome"):  # an outcome that contradicts its time cannot be made
            yield Mutation(
                "edited header", f"{field.name} of {cell.label}",
                edit(lambda h, n=field.name: replace(h, **{n: other(getattr(h, n))})), (cell.id,),
            )  # fmt: skip
    for field in fields(Cell):

        def of_cell(header: Header, name: str = field.name) -> Header:
            return replace(header, cell=replace(header.cell, **{name: other(getattr(header.cell, name))}))

        yield Mutation("edited header", f"cell.{field.name} of {cell.label}", edit(of_cell), (cell.id,))
    for part, keys in (("environment", ENVIRONMENT), ("attestation", ATTESTATION)):
        for key in (*keys, "of_a_later_version"):
            yield Mutation(
                "edited header", f"{part}.{key} of {cell.label}",
                edit(lambda h, p=part, k=key: replace(h, **{p: {**getattr(h, p), k: "other"}})), (cell.id,),
            )  # fmt: skip
    failed = edit(lambda h: replace(h, outcome="timeout", wall_s=None))
    yield Mutation("edited header", f"outcome of {cell.label}", failed, (cell.id,))


def _measured_otherwise(cell: Cell) -> Iterator[Mutation]:
    """A sound cell of another setting, in the place of this one or beside it; on another machine; on other prompts."""
    for field in fields(Cell):
        value = FITTING.get(field.name, OTHER[type(getattr(cell, field.name))])
        drafts = field.name not in ("proposal", "arm") or cell.arm != "ar"  # AR's rows have no blocks to give
        if drafts and getattr(cell, field.name) != value:
            changed = replace(cell, **{field.name: value})
            words = (field.name, changed.id, f"{cell.target}/{cell.arm}", f"{changed.target}/{changed.arm}")
            what = f"{field.name}={value!r}"
            yield Mutation("measured otherwise", f"{what} instead of {cell.label}", _swap(cell, changed), words)
            yield Mutation("measured otherwise", f"{what} beside {cell.label}", _swap(None, changed), words)
    for part, keys in (("environment", ENVIRONMENT), ("attestation", ATTESTATION)):
        for key in (*keys, "of_a_later_version"):
            seen = {**SEEN, part: {**SEEN[part], key: 17 if key == "window" else "other"}}
            yield Mutation("measured otherwise", f"{part}.{key} of {cell.label}", _swap(cell, cell, seen=seen), (key,))
    other_ids = _swap(cell, cell, hashed="other")
    yield Mutation("measured otherwise", f"other token ids in {cell.label}", other_ids, ("prompts_digest",))


def _swap(old: Cell | None, new: Cell, seen: dict[str, Any] = SEEN, hashed: str = "h") -> Callable[[Path], None]:
    """``new``, soundly measured, in the place of ``old``, or beside all others."""

    def change(folder: Path) -> None:
        if old is not None:
            _path(folder, old).unlink()
        for header, rows in made([new], seen, hashed):
            store.write_cell(folder, header, rows)

    return change


def _of_many(cells: list[Cell]) -> Iterator[Mutation]:
    """Whole arms, temperatures, prompt sets, seeds and repeats deleted."""
    for name in ("arm", "temperature", "prompt_set", "seed", "repeat", "replica"):
        for value in sorted({getattr(c, name) for c in cells}, key=str):
            gone = [c for c in cells if getattr(c, name) == value]
            if len(gone) < len(cells):

                def remove(folder: Path, gone: list[Cell] = gone) -> None:
                    for cell in gone:
                        _path(folder, cell).unlink()

                words = tuple(dict.fromkeys(f"{c.target}/{c.arm}" for c in gone))
                yield Mutation("removed", f"every cell with {name} {value!r}", remove, words)
