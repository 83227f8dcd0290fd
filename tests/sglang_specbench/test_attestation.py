"""Which servers may be measured as which arm."""

from typing import Any

import pytest

from sglang_specbench import SGLANG_VERSION, __version__
from sglang_specbench.arms import ARMS, Arm, Proposal
from sglang_specbench.attestation import Attestation, mismatches


def honest(arm: Arm, proposal: Proposal, device: str = "cuda") -> dict[str, Any]:
    return Attestation(
        plugin_version=__version__,
        sglang_version=SGLANG_VERSION,
        arm=arm.name,
        proposal=arm.worker_proposal(proposal),
        device=device,
        dtype="bfloat16",
        draft_model=arm.architectures[0] if arm.architectures else "",
        head=arm.head if device == "cuda" else "",
        head_folded=device == "cuda" and bool(arm.head),
        window=16 if arm.head else 1,
        drafted=15 if arm.head else 0,
        graph_sizes=(1, 2, 4) if device == "cuda" else (),
        seed=42,
        target_digest="t",
        draft_digest="d" if arm.checkpoint else "",
        patches=dict.fromkeys(arm.patches, "applied"),
    ).to_json()


def reasons(arm: Arm, proposal: Proposal, seen: dict[str, Any] | None, device: str = "cuda") -> list[str]:
    wanted: dict[str, Any] = {
        "window": 16,
        "seed": 42,
        "target_digest": "t",
        "draft_digest": "d" if arm.checkpoint else "",
        "device": device,
    }
    return mismatches(seen, arm, proposal, **wanted, dtype="bfloat16", capacity=4)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("arm", ARMS.values(), ids=lambda arm: arm.name)
def test_an_honest_server_may_be_measured(arm: Arm, temperature: float, device: str) -> None:
    proposal = arm.proposal(temperature)
    assert reasons(arm, proposal, honest(arm, proposal, device), device) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arm", "dflash"), ("proposal", "argmax"), ("seed", 43), ("target_digest", "x"), ("draft_digest", "x"),
        ("window", 17), ("drafted", 16), ("head", "_DflashDraftSampler"), ("head_folded", False),
        ("draft_model", "DFlashDraftModel"), ("verification", "greedy"), ("sglang_version", "0.5.24"),
        ("plugin_version", "0"), ("dtype", "float16"),
        ("device", "cpu"), ("graph_sizes", (1, 2)), ("graph_sizes", ()),
        ("patches", {"lilicorr_exact": "applied"}),
    ],
)  # fmt: skip
def test_each_lie_is_named(field: str, value: object) -> None:
    arm = ARMS["lilicorr"]
    found = reasons(arm, "sampled", honest(arm, "sampled") | {field: value})
    assert len(found) == 1
    assert (field if field != "patches" else "lilicorr_exact") in found[0]


@pytest.mark.parametrize("name", ["dflash2-argmax", "lilicorr-exact"])
def test_a_patch_that_was_not_applied_is_named(name: str) -> None:
    seen = honest(ARMS[name], "argmax") | {"patches": {}}
    assert reasons(ARMS[name], "argmax", seen) == [f"patch {ARMS[name].patches[0]!r} is not applied"]


def test_no_plugin_no_measurement() -> None:
    assert reasons(ARMS["ar"], "none", None) == ["no attestation in /server_info: the specbench plugin did not load"]


def test_dflash2_serves_both_temperatures_with_one_worker() -> None:
    assert ARMS["dflash2"].worker_proposal("argmax") == "sampled"
    assert ARMS["dflash2-argmax"].worker_proposal("argmax") == "argmax"
    assert ARMS["dspark"].worker_proposal("argmax") == "argmax"
    assert ARMS["lilicorr"].worker_proposal("argmax") == "argmax"
