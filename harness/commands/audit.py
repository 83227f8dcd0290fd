"""`specbench audit`: certificates for the arms of a sweep's targets."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.audit import certificate, session, subjects
from harness.audit.reference import Design
from harness.failure import Failure
from harness.models import Model
from harness.sweep import load
from sglang_specbench.errors import UserError

EXIT = {"pass": 0, "inconclusive": 3, "infrastructure": 5, "not attested": 4, "fail": 1}  # from good to bad


def audit(
    sweep: Annotated[str, typer.Argument(help="Sweep file or shipped sweep: its targets, drafters and server.")],
    arm: Annotated[list[str] | None, typer.Option(help="Arm to audit; may be repeated. Default: all it can.")] = None,
    prompt_set: Annotated[str, typer.Option("--set", help="Prompt set; default: the sweep's first.")] = "",
    samples: Annotated[int, typer.Option(min=200, help="Samples at temperature 1; 5/8 as many beside.")] = 4000,
    out: Annotated[Path, typer.Option(help="Folder of the certificates.")] = Path("results/certificates"),
    server: Annotated[str, typer.Option(help="URL of a running server of the one --arm; none is started.")] = "",
    target_server: Annotated[str, typer.Option(help="With --server: URL of the target's own server.")] = "",
) -> None:
    """Does an arm still sample from the target's distribution."""
    loaded = load(sweep)
    if bool(server) != bool(target_server) or (server and len(arm or []) != 1):
        raise UserError("audit: --server, --target-server and one --arm go together", "give all three or none")
    if not server and importlib.util.find_spec("sglang") is None:
        raise UserError("specbench audit needs SGLang", 'pip install "sglang-specbench[serve]"')
    chosen = prompt_set or next(iter(loaded.panel[0].sets))
    verdicts = ["pass"]
    with tempfile.TemporaryDirectory(prefix="specbench-audit-") as scratch:
        serve = subjects.elsewhere(server, target_server) if server else subjects.here(Path(scratch))
        for name in loaded.target:
            subject = subjects.subject(loaded, name, serve, remote=bool(server))
            drafts = subjects.arms(loaded, name, arm or [], subject.launch.device)
            verdicts += _target(subject, drafts, chosen, Design(samples=samples), out)
    raise typer.Exit(EXIT[max(verdicts, key=list(EXIT).index)])


def _target(
    subject: session.Subject, drafts: dict[str, Model | None], prompt_set: str, design: Design, out: Path
) -> list[str]:
    """Audit every arm; one line each, as it ends."""
    console = Console()
    try:
        console.print(f"{subject.name}: asking the target for its law")
        known = session.reference(subject, subjects.prompt_ids(Path(subject.target.path), prompt_set), design)
    except (session.NotAttested, Failure) as problem:
        console.print(f"{subject.name}: the target's own server: {problem}", soft_wrap=True)
        return ["infrastructure" if isinstance(problem, Failure) else "not attested"]
    verdicts = []
    for arm, draft in drafts.items():
        try:
            found = session.audit(subject, arm, draft, known, design)
            certificate.write(found, out)
            verdict, text = found.verdict, f"smallest bias caught {found.smallest_bias:.3f}; {'; '.join(found.reasons)}"
        except session.NotAttested as reasons:
            verdict, text = "not attested", str(reasons)
        except Failure as failure:
            verdict, text = "infrastructure", str(failure)
        console.print(f"{subject.name}/{arm}: [bold]{verdict}[/] {text}", soft_wrap=True)
        verdicts.append(verdict)
    return verdicts
