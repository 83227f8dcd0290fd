"""A patch is applied to the function that it was written for, and to no other."""

import sys
import types
from collections.abc import Iterator

import pytest

from sglang_specbench import SGLANG_VERSION
from sglang_specbench.serving.patching import APPLIED, Patch, PatchError, always, apply, signature_of


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A pretended SGLang with one class and one flag."""
    fake = types.ModuleType("sglang")
    fake.__version__ = SGLANG_VERSION  # type: ignore[attr-defined]

    class Worker:
        def step(self, batch: int, *, fast: bool = True) -> str:
            return f"original {batch}"

    fake.Worker, fake.FLAG = Worker, False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sglang", fake)
    before = dict(APPLIED)
    yield fake
    APPLIED.clear()
    APPLIED.update(before)


def patch(**changes: object) -> Patch:
    values: dict[str, object] = {
        "name": "p", "target": "sglang:Worker.step", "signature": "(self, batch, *, fast=True)",
        "replace": lambda original: lambda self, batch, *, fast=True: "ours, not " + original(self, batch),
        "reason": "test", "delete_when": "never",
    }  # fmt: skip
    return Patch(**{**values, **changes})  # type: ignore[arg-type]


def test_replaces_and_records(module: types.ModuleType) -> None:
    apply(patch())
    assert module.Worker().step(3) == "ours, not original 3"
    assert APPLIED["p"] == "applied"


def test_a_flag_is_a_target_too(module: types.ModuleType) -> None:
    apply(patch(target="sglang:FLAG", signature="False", replace=always(True)))
    assert module.FLAG is True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signature": "(self, batch)"}, r"is \(self, batch, \*, fast=True\), the patch was written for"),
        ({"target": "sglang:Worker.leap"}, "does not exist"),
        ({"sglang": "0.5.24"}, "written for SGLang 0.5.24, found 0.5.23"),
        ({"target": "sglang:FLAG", "signature": "True"}, "is False"),
    ],
)
def test_refuses_what_it_was_not_written_for(
    module: types.ModuleType, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(PatchError, match=message):
        apply(patch(**changes))
    assert module.Worker().step(3) == "original 3"
    assert "p" not in APPLIED


def test_signatures_leave_annotations_out() -> None:
    def annotated(a: int, *b: str, c: "float" = 1.0) -> None: ...

    assert signature_of(annotated) == "(a, *b, c=1.0)"
    assert signature_of(None) == "None"
