"""From a sweep to what is audited: its targets and arms, the prompts, and the servers.

Knows sweeps, checkpoints and prompt sets; asks no server.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.audit.audit import SEEDS, Serve, Subject
from harness.audit.reference import Design
from harness.audit.target_distribution import Prefix
from harness.prompts import load as prompts
from harness.prompts.chat_template import Renderer, messages
from harness.serve.remote_server import Elsewhere
from harness.serve.server import Server, free_port
from harness.store.lock import RECORDS
from harness.sweep.sweep import AR, Sweep
from sglang_specbench import checkpoint, models
from sglang_specbench.arms import ARMS, Arm, get_arm, word_of
from sglang_specbench.device import capability, detect_device, dtype_on
from sglang_specbench.errors import UserError
from sglang_specbench.launch import Launch
from sglang_specbench.machine import unsupplied
from sglang_specbench.models import Model

PROMPTS = 48  # looked at for one to sample; some of them are compared at temperature 0
CONTEXT = 1024  # tokens: short prompts, short answers
ANSWER = Design.greedy_tokens + Design.sure + Design.depth  # the longest that is asked for
SAME_DRAWS = "--enable-deterministic-inference"  # SGLang 0.5.23: every request samples with the seed 42


def subject(sweep: Sweep, name: str, serve: Serve, prompt_set: str, remote: bool) -> Subject:
    """Target ``name`` of ``sweep``; `UserError` if its weights are not here."""
    if SAME_DRAWS in sweep.server.args:
        hint = "audit without it: it gives every request the same draws, so samples are not independent"
        raise UserError(f"{sweep.where}: server.args: {SAME_DRAWS}", hint)
    target = _present(models.resolve(sweep.target[name].path, f"{sweep.where}: target.{name}.path"))
    device = sweep.server.device if sweep.server.device != "auto" else detect_device()
    launch = Launch(
        arm=AR,
        proposal="none",
        target=target.path,
        device=device,
        dtype=dtype_on(device, sweep.server.dtype),
        port=0,  # `here` takes a free one at each start
        seed=SEEDS[0],
        concurrency=Design.bulk,
        capability=capability(),
        context_length=min(CONTEXT, sweep.server.context_length),
        extra=sweep.server.words,
    )
    return Subject(
        name=name,
        target=target,
        vocabulary=checkpoint.vocabulary(Path(target.path)),
        launch=launch,
        serve=serve,
        prompt_set=prompt_set,
        remote=remote,
        start_timeout_s=sweep.server.start_timeout_s,
        request_timeout_s=sweep.server.request_timeout_s,
    )


def arms(sweep: Sweep, name: str, wanted: Sequence[str], device: str) -> dict[str, Model | None]:
    """Arm -> its drafter: those ``wanted``, or every one that has a checkpoint in the sweep and runs on ``device``."""
    drafters = sweep.target[name].drafters
    able = [a for a in _having(drafters) if not unsupplied(a) and not (device == "cpu" and "cuda" in a.needs)]
    found: dict[str, Model | None] = {}
    for arm in [get_arm(w, "audit: --arm") for w in wanted] or [ARMS[AR], *able]:
        if arm.checkpoint and arm.checkpoint not in drafters:
            raise UserError(
                f"{sweep.where}: target.{name}.drafters: no {arm.checkpoint!r}, which {arm.name} needs",
                f'add "{arm.checkpoint}" = "FOLDER or hub id"',
            )
        where = f"{sweep.where}: target.{name}.drafters.{arm.checkpoint}"
        if lacking := unsupplied(arm):
            raise UserError(f"audit: --arm {arm.name} is {lacking}", "leave it out")
        if device == "cpu" and "cuda" in arm.needs:
            raise UserError(f"audit: --arm {arm.name} needs a GPU", "see specbench arms")
        found[arm.name] = _present(models.resolve(drafters[arm.checkpoint], where)) if arm.checkpoint else None
    return found


def _having(drafters: Iterable[str]) -> list[Arm]:
    """Arms, and variants of arms, whose checkpoint is one of ``drafters``."""
    words = dict.fromkeys(word_of(name) for name in drafters)
    named = [ARMS[f"{arm}@{word}" if word else arm] for word in words for arm in ARMS if ARMS[arm].checkpoint]
    return [arm for arm in named if arm.checkpoint in set(drafters)]


def prompt_ids(subject: Subject) -> tuple[dict[str, Prefix], int]:
    """First turns of `PROMPTS` prompts, spread over the set, rendered; how many of them were too long and are left out.

    `UserError` if none is left.
    """
    try:
        found = prompts.load(subject.prompt_set).prompts
    except prompts.MissingSet as missing:
        raise UserError(str(missing), "or name another with --set") from None
    renderer, room = Renderer(Path(subject.target.path)), subject.launch.context_length - ANSWER
    taken = found[:: max(1, len(found) // PROMPTS)][:PROMPTS]
    ids = {p.id: tuple(renderer.render(messages(p))) for p in taken}
    if room < 1:
        length = subject.launch.context_length
        raise UserError(f"audit: server.context_length: {length} tokens hold no prompt and answer", "raise it")
    short = {name: tokens for name, tokens in ids.items() if len(tokens) <= room}
    if not short:
        raise UserError(
            f"audit: every prompt of {subject.prompt_set} is longer than {room} tokens", "name another --set"
        )
    return short, len(ids) - len(short)


def here(folder: Path) -> Serve:
    """Servers of our own; their logs stay in ``folder``, beside records to find them by if we are killed."""

    def serve(launch: Launch) -> Server:
        return Server(replace(launch, port=free_port()), folder / f"{launch.arm}-{launch.seed}.log", folder / RECORDS)

    return serve


def elsewhere(arm_url: str, target_url: str) -> Serve:
    """Two servers that somebody else started."""
    return lambda launch: Elsewhere(target_url if launch.arm == AR else arm_url)


def _present(model: Model) -> Model:
    model.require()
    return model
