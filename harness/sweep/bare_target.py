"""A sweep of one target and nothing else: what somebody means who names a model where a sweep is expected."""

from harness.sweep.sweep import AR, Panel, ServerSpec, SetSpec, Sweep, TargetSpec
from sglang_specbench.arms import get_arm
from sglang_specbench.checkpoint import read_config
from sglang_specbench.errors import UserError
from sglang_specbench.models import folder_of

WHERE = "serve"


def sweep_of(target: str, arm: str = AR, concurrency: int = 1) -> Sweep:
    """``arm`` of the model ``target``, for ``concurrency`` requests at once, in as much context as the model has.

    `UserError` if the model is not here, or the arm needs a drafter, which only a sweep can name.
    """
    if checkpoint := get_arm(arm, f"{WHERE}: --arm").checkpoint:
        raise UserError(f"{WHERE}: arm {arm!r} needs a drafter {checkpoint!r}", "serve a sweep that names it")
    config = read_config(folder_of(target, WHERE) / "config.json")
    longest = config.get("max_position_embeddings")
    context = ServerSpec().context_length
    return Sweep(
        name="serve",
        target={"target": TargetSpec(path=target)},
        panel=(Panel(arms=(arm,), sets={"mini": SetSpec(prompts=1)}, concurrency=(concurrency,)),),
        server=ServerSpec(context_length=min(context, longest) if isinstance(longest, int) else context),
        where=WHERE,
    )
