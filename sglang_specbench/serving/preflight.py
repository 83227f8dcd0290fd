"""SGLang's own argument resolution for a list of launches, without a GPU and without loading a model.

Run as ``python -m sglang_specbench.serving.preflight``: a JSON list of launches (the fields of `Launch`) on stdin, one
JSON verdict a line on stdout, in order. It finds what a server would refuse after minutes of loading: block sizes that
disagree, unreadable draft configs, unknown flags, a draft config that its parser rejects. It cannot see memory, kernels
or weights (``specbench check`` reads those).
"""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sglang_specbench import checkpoint
from sglang_specbench.arms import ARMS, Arm
from sglang_specbench.config import from_dict
from sglang_specbench.launch import Launch
from sglang_specbench.refused_log import check_log
from sglang_specbench.serving.patches.table import gate_patches
from sglang_specbench.serving.patching import APPLIED, apply

_SHOWN = (
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "attention_backend",
    "speculative_draft_attention_backend",
    "max_running_requests",
    "random_seed",
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """``ok``, or the ``reasons`` why the server would not serve the arm; ``resolved`` are SGLang's answers."""

    arm: str
    proposal: str
    ok: bool
    reasons: tuple[str, ...] = ()
    resolved: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Verdicts of the launches on stdin."""
    for row in json.load(sys.stdin):
        verdict = judge(from_dict(Launch, row, "stdin"))
        print(json.dumps(asdict(verdict)), flush=True)


def judge(launch: Launch) -> Verdict:
    """Resolve the arguments of ``launch`` in this process, under its environment."""
    arm = ARMS[launch.arm]
    with _environment(launch.env), _captured_log() as log:
        try:
            resolved = _resolve(launch)
            _parse_draft_config(arm, launch)
        except SystemExit:  # argparse; its message is in the log
            reasons = [log.getvalue().strip().splitlines()[-1]]
            return Verdict(arm=arm.name, proposal=launch.proposal, ok=False, reasons=tuple(reasons))
        except Exception as error:  # noqa: BLE001 - whatever SGLang raises is the verdict
            reason = f"{type(error).__name__}: {error}"
            return Verdict(arm=arm.name, proposal=launch.proposal, ok=False, reasons=(reason,))
    reasons = check_log(log.getvalue(), arm, launch.proposal, "cpu")  # "cpu": no proof lines before a server runs
    if arm.head and launch.draft:
        trained, served = checkpoint.window(Path(launch.draft), arm), resolved["speculative_num_draft_tokens"]
        if served != trained:  # SGLang only warns, after it has loaded the weights
            reasons.append(f"window: the checkpoint's is {trained}, SGLang would verify {served}")
    return Verdict(arm=arm.name, proposal=launch.proposal, ok=not reasons, reasons=tuple(reasons), resolved=resolved)


def _resolve(launch: Launch) -> dict[str, Any]:
    from sglang.srt.arg_groups.overrides import resolved_view
    from sglang.srt.server_args import prepare_server_args

    for patch in gate_patches(launch.config):
        if patch.name not in APPLIED:
            apply(patch)
    device = () if launch.device == "cpu" else ("--device", "cuda")
    arguments = prepare_server_args([*launch.argv[2:], *device, "--skip-tokenizer-init"])
    arguments.resolve_once()
    view = resolved_view(arguments)
    return {name: getattr(view, name) for name in _SHOWN}


def _parse_draft_config(arm: Arm, launch: Launch) -> None:
    """What the worker would parse after loading: SGLang's parsers of the draft's ``dflash_config``."""
    if not arm.head or launch.draft is None:
        return
    from sglang.srt.utils.hf_transformers_utils import get_config

    config = get_config(launch.draft, trust_remote_code=False)
    named = (config.architectures or [""])[0]
    if named not in arm.architectures:
        raise ValueError(f"{launch.draft}/config.json: architecture {named!r}, arm wants {arm.architectures}")
    if arm.algorithm == "DSPARK":
        from sglang.srt.speculative.dspark_components.dspark_config import parse_dspark_draft_config

        parse_dspark_draft_config(draft_hf_config=config)
        return
    from sglang.srt.speculative.dflash_utils import parse_dflash_draft_config

    parse_dflash_draft_config(draft_hf_config=config)
    if arm.checkpoint.startswith("lilicorr"):
        from sglang.srt.speculative.lilicorr_utils import parse_lilicorr_draft_config

        parse_lilicorr_draft_config(draft_hf_config=config)


@contextlib.contextmanager
def _environment(own: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(own)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _captured_log() -> Iterator[io.StringIO]:
    """Log records and stderr, away from stdout, which carries the verdicts."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
            yield text
    finally:
        root.removeHandler(handler)


if __name__ == "__main__":
    main()
