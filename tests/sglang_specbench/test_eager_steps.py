"""Steps outside any graph are counted; prefills and replays are not."""

from types import SimpleNamespace

import pytest

from sglang_specbench.serving import eager_steps


class Mode:
    def __init__(self, name: str) -> None:
        self.name = name

    def is_decode(self) -> bool:
        return self.name == "decode"

    def is_target_verify(self) -> bool:
        return self.name == "verify"


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_steps, "_counts", {})


def test_only_eager_decode_and_verify_steps_count() -> None:
    runner = SimpleNamespace(forward=lambda batch, graph=False: SimpleNamespace(can_run_graph=graph))
    eager_steps.watch("draft", runner)
    eager_steps.watch("draft", runner)  # /server_info may be asked twice
    for name, graph in [("verify", False), ("decode", False), ("verify", True), ("extend", False), ("idle", False)]:
        assert runner.forward(SimpleNamespace(forward_mode=Mode(name)), graph=graph).can_run_graph is graph
    assert eager_steps.counts() == {"draft": 2}
