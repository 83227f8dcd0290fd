"""Fetching: licence first, then the file; a failure of the hub is the infrastructure's."""

import json

import pytest

from harness.prompts import fetch
from harness.prompts import load as prompts
from harness.prompts.manifest import manifest
from sglang_specbench.errors import UserError


def rows(_):
    return [{"problem": f"Find {i}.", "problem_idx": i} for i in range(30)]


def test_a_restricted_set_needs_the_licence_accepted(monkeypatch, tmp_path):
    monkeypatch.setattr(fetch, "hub_rows", lambda _: pytest.fail("asked the hub before the licence"))
    with pytest.raises(UserError, match="is under: CC BY-NC-SA") as caught:
        fetch.fetch(manifest("aime25"), accepted=False, out=tmp_path)
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_fetched_set_has_final_wording_and_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(fetch, "hub_rows", rows)
    path = fetch.fetch(manifest("aime25"), accepted=True, out=tmp_path)
    first = json.loads(path.read_text().splitlines()[0])
    assert first["turns"] == ["Find 0.\nPlease reason step by step, and put your final answer within \\boxed{}."]
    found = prompts.load("aime25", [tmp_path])
    assert found.prompts[29].id == "aime25/29"
    assert "differs from the pinned one" in found.report.notes[0]


def test_a_hub_that_fails_is_infrastructure_and_writes_nothing(monkeypatch, tmp_path):
    def down(_):
        yield {"problem": "a"}
        raise ConnectionError("no route")

    monkeypatch.setattr(fetch, "hub_rows", down)
    with pytest.raises(UserError, match=r"MathArena/aime_2025: download failed: ConnectionError: no route") as caught:
        fetch.fetch(manifest("aime25"), accepted=True, out=tmp_path)
    assert caught.value.exit_code == 5
    assert list(tmp_path.iterdir()) == []


def test_a_shipped_set_is_not_fetched(tmp_path):
    with pytest.raises(UserError, match="has no source on the hub"):
        fetch.fetch(manifest("mini"), accepted=True, out=tmp_path)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_files_of_a_hub_repository_may_be_lists_or_lines(monkeypatch, tmp_path, name):
    import huggingface_hub

    data = [{"instruction": "a\u2028b"}, {"instruction": "c"}]
    text = json.dumps(data) if name == "a.json" else "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in data)
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda hub, name, **_: str(tmp_path / name), raising=False)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda hub, filename, **_: str(tmp_path / filename))
    source = manifest("alpaca").source
    assert list(fetch.hub_rows(type(source)(hub="x/y", files=(name,)))) == data
