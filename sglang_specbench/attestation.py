"""The proof that a server gives of itself, and the rule that decides whether a cell may be measured on it.

The plugin fills an `Attestation` inside the scheduler process after the workers are built (see ``serving``); SGLang
publishes it in ``/server_info`` under the key ``specbench``. `mismatches` compares it with what the launch asked for.
What changes while the server runs stands under the same key in ``internal_states`` (see ``serving.attest``).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sglang_specbench import SGLANG_VERSION, __version__
from sglang_specbench.arms import ARM_PATCHES, Arm, Proposal

KEY = "specbench"


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """What one server process says that it runs. All values are plain JSON."""

    plugin_version: str
    sglang_version: str
    arm: str
    proposal: str  # none | argmax | sampled: how the worker commits a slot of a request at temperature > 0
    device: str  # cpu | cuda
    dtype: str
    worker: str = ""  # draft worker class
    draft_model: str = ""  # class of the loaded draft model
    head: str = ""  # class of the draft sampler; "" if the head runs eager or there is none
    head_folded: bool = False  # the head is part of the captured draft graph
    head_captured: bool = False  # its hook stood in the draft runner whose graphs were captured
    draft_graph_sizes: tuple[int, ...] = ()  # captured batch sizes of the draft; () on CPU
    window: int = 1  # positions verified a block
    drafted: int = 0  # slots drafted a block
    candidate_pool: int | None = None  # Domino's
    graph_sizes: tuple[int, ...] = ()  # captured decode batch sizes; () on CPU
    seed: int | None = None
    target_digest: str = ""
    draft_digest: str = ""
    verification: str = "exact"  # "exact", or what it falls back to
    threads: int = 0  # torch intra-op threads of the scheduler
    patches: Mapping[str, str] = field(default_factory=dict)  # name -> "applied"; "test:..." is a planted fault

    def to_json(self) -> dict[str, Any]:
        """As published in ``/server_info``."""
        return asdict(self)


def mismatches(
    seen: Mapping[str, Any] | None,
    arm: Arm,
    proposal: Proposal,
    *,
    seed: int,
    target_digest: str,
    draft_digest: str,
    device: str,
    dtype: str,
    capacity: int,
    window: int,
) -> list[str]:
    """Why a server with attestation ``seen`` must not be measured as ``arm``; empty when it may.

    ``capacity`` is the most requests in flight, all of which a captured graph must hold; ``window`` the positions
    that a block arm verifies, by its checkpoint. Each reason names the field with the wanted and the seen value.
    """
    if not seen:
        return ["no attestation in /server_info: the specbench plugin did not load"]
    wanted: dict[str, Any] = {
        "plugin_version": __version__,
        "sglang_version": SGLANG_VERSION,
        "arm": arm.name,
        "proposal": arm.worker_proposal(proposal),
        "device": device,
        "dtype": dtype,
        "seed": seed,
        "target_digest": target_digest,
        "draft_digest": draft_digest,
        "verification": "exact",
    }
    if arm.head:
        wanted |= {"window": window, "drafted": window - 1}
        if device == "cuda":
            wanted |= {"head": arm.head, "head_folded": True}
    reasons = [f"{k}: wanted {v!r}, server says {seen.get(k)!r}" for k, v in wanted.items() if seen.get(k) != v]
    sizes = seen.get("graph_sizes") or ()
    if device == "cuda" and max(sizes, default=0) < capacity:
        reasons.append(f"graph_sizes: wanted up to {capacity}, server says {tuple(sizes)!r}")
    models = arm.architectures
    if models and seen.get("draft_model") not in models:
        reasons.append(f"draft_model: wanted {' or '.join(models)}, server says {seen.get('draft_model')!r}")
    patches = seen.get("patches") or {}
    reasons += [f"patch {name!r} is not applied" for name in arm.patches if patches.get(name) != "applied"]
    foreign = [name for name in patches if name in ARM_PATCHES and name not in arm.patches]
    return reasons + [f"patch {name!r} is applied, which is not this arm's" for name in foreign]
