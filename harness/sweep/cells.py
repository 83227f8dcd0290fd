"""From a sweep's panels to cells: the product of their lists, without what cannot differ.

Pure. Two rules keep the product small: at temperature 0 only a panel's first seed counts, and an arm whose server at
that proposal is another arm's (DSpark's argmax twin at temperature 0) is measured once, under the first name of ARMS.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from harness.schema.cell import Cell
from harness.sweep.resolve import Inputs
from harness.sweep.sweep import AR, MOST_CELLS, Panel, SetSpec, Sweep
from sglang_specbench import SGLANG_VERSION, __version__
from sglang_specbench.arms import ARMS, Arm, table_order
from sglang_specbench.errors import UserError

VERSIONS = (f"sglang {SGLANG_VERSION}", f"specbench {__version__}")


@dataclass(frozen=True)
class Taken:
    """What one panel takes of one prompt set, or of one tier of it."""

    prompt_set: str
    tier: str
    version: str
    prompts: int
    max_new_tokens: int
    ignore_eos: bool


def cells(sweep: Sweep, inputs: Inputs) -> list[Cell]:
    """Every cell of ``sweep`` once, in the order of its panels; AR's closing brackets included."""
    drawn = [_drawn(panel, inputs, f"{sweep.where}: panel[{i}]: sets") for i, panel in enumerate(sweep.panel)]
    found: dict[Cell, None] = {}
    for repeat, (panel, taken) in product(range(sweep.repeats), zip(sweep.panel, drawn, strict=True)):
        for target in sweep.targets_of(panel):
            for cell in _panel_cells(sweep, panel, taken, inputs, target, repeat):
                found.setdefault(cell)
                if len(found) > MOST_CELLS:
                    hint = "shorten its lists, or split it"
                    raise UserError(f"{sweep.where}: panel: more than {MOST_CELLS:,} cells", hint)
    return list(found)


def server_identity(arm: Arm, temperature: float) -> tuple[object, ...]:
    """What decides which server an arm runs on; arms with the same one at a temperature are the same there."""
    proposal = arm.proposal(temperature)
    environment = tuple(sorted(arm.environment(proposal).items()))
    return (arm.algorithm, arm.checkpoint, arm.flags, proposal, environment, arm.patches)


def distinct(arms: Sequence[str], temperature: float) -> list[str]:
    """``arms`` without those that are, at ``temperature``, another one of them; order kept."""
    first: dict[tuple[object, ...], str] = {}
    for name in sorted(arms, key=table_order):
        first.setdefault(server_identity(ARMS[name], temperature), name)
    kept = set(first.values())
    return [name for name in arms if name in kept]


def _panel_cells(
    sweep: Sweep, panel: Panel, drawn: Sequence[Taken], inputs: Inputs, target: str, repeat: int
) -> Iterator[Cell]:
    capacity = max(c for other in sweep.panel for c in other.concurrency)
    for taken in drawn:
        _fits(sweep, taken)
    for taken, c, temperature in product(drawn, panel.concurrency, panel.temperatures):
        seeds = panel.seeds if temperature > 0 else panel.seeds[:1]
        for seed, arm in product(seeds, distinct(panel.arms, temperature)):
            draft = inputs.drafters.get((target, ARMS[arm].checkpoint))
            for replica in (0, 1) if arm == AR else (0,):
                yield Cell(
                    target=target,
                    target_digest=inputs.targets[target].digest,
                    arm=arm,
                    proposal=ARMS[arm].proposal(temperature),
                    draft_digest=draft.digest if draft else "",
                    prompt_set=taken.prompt_set,
                    prompt_version=taken.version,
                    tier=taken.tier,
                    temperature=temperature,
                    seed=seed,
                    concurrency=c,
                    repeat=repeat,
                    replica=replica,
                    prompts=taken.prompts,
                    max_new_tokens=taken.max_new_tokens,
                    ignore_eos=taken.ignore_eos,
                    device=inputs.device,
                    dtype=inputs.dtype,
                    render=inputs.renders[target],
                    capacity=capacity,
                    context_length=sweep.server.context_length,
                    stream=sweep.stream,
                    server=sweep.server.words,
                    versions=VERSIONS,
                )


def _drawn(panel: Panel, inputs: Inputs, where: str) -> list[Taken]:
    wanted = [(name, spec, tier) for name, spec in panel.sets.items() for tier in spec.tiers or ("",)]
    return [_take(inputs, name, spec, tier, f"{where}.{name}") for name, spec, tier in wanted]


def _fits(sweep: Sweep, taken: Taken) -> None:
    """`UserError` unless an answer of full length, and at least one token of prompt, fit the server's context."""
    if taken.max_new_tokens >= sweep.server.context_length:
        raise UserError(
            f"{sweep.where}: server.context_length: {sweep.server.context_length} tokens do not hold an answer of "
            f"{taken.max_new_tokens} ({taken.prompt_set})",
            "raise it, or lower the set's max_new_tokens",
        )


def _take(inputs: Inputs, name: str, spec: SetSpec, tier: str, where: str) -> Taken:
    manifest, here = inputs.manifests[name], inputs.sets.get(name)
    taken = here.take(spec.prompts, tier, where) if here else ()
    return Taken(
        prompt_set=name,
        tier=tier,
        version=here.version(taken) if here else f"v{manifest.version}:missing",
        prompts=len(taken) or spec.prompts or manifest.rows,
        max_new_tokens=spec.max_new_tokens or manifest.max_new_tokens,
        ignore_eos=manifest.ignore_eos,
    )
