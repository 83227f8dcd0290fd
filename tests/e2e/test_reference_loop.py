"""The server against the reference loop on the mini models: the same tokens, and as many accepted drafts in each block.

This ties everything together that no unit test can: our exports as SGLang loads them, the target's hidden states that
the drafter reads, positions, the anchor's row, and the counters. Temperature 0, float32, one request at a time. The
two programs round differently, so a near-tie may go either way once; the files are fixed, so it does not flicker.
"""

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sglang_specbench.arms import ARMS
from sglang_specbench.launch import Launch
from tests.cpu_server.servers import free_port, serve, start_ordinarily

pytestmark = [pytest.mark.sglang, pytest.mark.torch, pytest.mark.slow]
MINI = Path(str(files("drafters"))) / "mini"
TOKENS = 80
SERVED = ("dflash", "dflash2", "domino", "dspark", "lilicorr", "lilicorr-conv", "lilicorr-exact")


def prompts() -> list[list[int]]:
    """One held-out prompt of each domain, rendered as it is served."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MINI / "target")
    rows = [
        json.loads((MINI / f"prompts/{d}.jsonl").read_text().splitlines()[0]) for d in ("arithmetic", "code", "prose")
    ]
    options: dict[str, Any] = {"add_generation_prompt": True, "return_dict": False}
    return [tokenizer.apply_chat_template([{"role": "user", "content": r["turns"][0]}], **options) for r in rows]


def reference(arm: str, asked: list[list[int]]) -> list[tuple[list[int], dict[int, int]]]:
    """(output ids, how many blocks accepted how many drafts) for each prompt."""
    from safetensors.torch import load_file

    from drafters.model.drafter import load
    from drafters.reference.decode import Rule, decode
    from drafters.reference.target import Target

    folder = MINI / ARMS[arm].checkpoint
    config = json.loads((folder / "config.json").read_text())
    drafter = load(config, load_file(folder / "model.safetensors"))
    target, rule = Target.load(MINI / "target"), Rule(exact_path=arm == "lilicorr-exact")
    decoded = [decode(target, drafter, ids, TOKENS, rule) for ids in asked]
    return [(d.output_ids, dict(Counter(d.accepted))) for d in decoded]


@pytest.mark.parametrize("arm", SERVED)
def test_server_equals_reference(arm: str, tmp_path: Path) -> None:
    asked = prompts()
    launch = Launch(
        arm=arm,
        proposal=ARMS[arm].sampling,
        target=str(MINI / "target"),
        draft=str(MINI / ARMS[arm].checkpoint),
        device="cpu",
        dtype="float32",
        port=free_port(),
        seed=42,
        context_length=512,
    )
    with serve(launch, tmp_path / "log", start_ordinarily) as server:
        answers = [server.generate([ids], 0, TOKENS)[0] for ids in asked]
    served = [(a["output_ids"], histogram(a["meta_info"])) for a in answers]
    assert served == reference(arm, asked)
    assert sum(n * blocks for _, counts in served for n, blocks in counts.items()) > 0


def histogram(meta: dict[str, Any]) -> dict[int, int]:
    return {n: blocks for n, blocks in enumerate(meta["spec_correct_drafts_histogram"]) if blocks}
