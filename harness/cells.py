"""From a sweep's panels to cells: the product of their lists, without what cannot differ.

Pure. Two rules keep the product small: at temperature 0 only a panel's first seed counts, and an arm whose server at
that proposal is another arm's (DSpark's argmax twin at temperature 0) is measured once, under the first name of ARMS.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from harness.cell import Cell
from harness.inputs import Inputs
from harness.sweep import AR, Panel, SetSpec, Sweep
from sglang_specbench import SGLANG_VERSION, __version__
from sglang_specbench.arms import ARMS, Arm

VERSIONS = (f"sglang {SGLANG_VERSION}", f"specbench {__version__}")


def cells(sweep: Sweep, inputs: Inputs) -> list[Cell]:
    """Every cell of ``sweep`` once, in the order of its panels; AR's closing brackets included."""
    found: dict[Cell, None] = {}
    for repeat, panel in product(range(sweep.repeats), sweep.panel):
        for target in sweep.targets_of(panel):
            for cell in _panel_cells(sweep, panel, inputs, target, repeat):
                found.setdefault(cell)
    return list(found)


def server_identity(arm: Arm, temperature: float) -> tuple[object, ...]:
    """What decides which server an arm runs on; arms with the same one at a temperature are the same there."""
    proposal = arm.proposal(temperature)
    environment = tuple(sorted(arm.environment(proposal).items()))
    return (arm.algorithm, arm.checkpoint, arm.flags, proposal, environment, arm.patches, arm.proof(proposal))


def distinct(arms: Sequence[str], temperature: float) -> list[str]:
    """``arms`` without those that are, at ``temperature``, another one of them; order kept."""
    first: dict[tuple[object, ...], str] = {}
    for name in (name for name in ARMS if name in arms):
        first.setdefault(server_identity(ARMS[name], temperature), name)
    kept = set(first.values())
    return [name for name in arms if name in kept]


def graph_sizes(sweep: Sweep, device: str) -> tuple[int, ...]:
    """Decode batch sizes that every server of the sweep captures: each concurrency measured. None on CPU."""
    return tuple(sorted({c for panel in sweep.panel for c in panel.concurrency})) if device == "cuda" else ()


def _panel_cells(sweep: Sweep, panel: Panel, inputs: Inputs, target: str, repeat: int) -> Iterator[Cell]:
    for (name, spec), c, temperature in product(panel.sets.items(), panel.concurrency, panel.temperatures):
        seeds = panel.seeds if temperature > 0 else panel.seeds[:1]
        for tier, seed, arm in product(spec.tiers or ("",), seeds, distinct(panel.arms, temperature)):
            for replica in (0, 1) if arm == AR else (0,):
                yield Cell(
                    **_model_fields(inputs, target, arm),
                    **_prompt_fields(inputs, name, spec, tier),
                    proposal=ARMS[arm].proposal(temperature),
                    temperature=temperature,
                    seed=seed,
                    concurrency=c,
                    repeat=repeat,
                    replica=replica,
                    graph_sizes=graph_sizes(sweep, inputs.device),
                    server=("--context-length", str(sweep.server.context_length), *sweep.server.args),
                )


def _model_fields(inputs: Inputs, target: str, arm: str) -> dict[str, object]:
    draft = inputs.drafters.get((target, ARMS[arm].checkpoint))
    return {
        "target": target,
        "target_digest": inputs.targets[target].digest,
        "arm": arm,
        "draft_digest": draft.digest if draft else "",
        "device": inputs.device,
        "dtype": inputs.dtype,
        "render": inputs.renders[target],
        "versions": VERSIONS,
    }


def _prompt_fields(inputs: Inputs, name: str, spec: SetSpec, tier: str) -> dict[str, object]:
    manifest = inputs.manifests[name]
    here = inputs.sets.get(name)
    taken = here.take(spec.prompts, tier) if here else None
    return {
        "prompt_set": name,
        "prompt_version": here.version(taken) if here and taken else f"v{manifest.version}:missing",
        "tier": tier,
        "prompts": len(taken) if taken else spec.prompts or manifest.rows,
        "max_new_tokens": spec.max_new_tokens or manifest.max_new_tokens,
        "ignore_eos": manifest.ignore_eos,
    }
