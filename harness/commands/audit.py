"""`specbench audit`: certificates for the arms of a sweep's targets."""

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.text import Text

from harness.audit import audit as session
from harness.audit import certificate_file, subjects
from harness.audit.certificate import LARGEST_BIAS, least_samples
from harness.audit.reference import Design, Reference
from harness.audit.target_distribution import Prefix
from harness.measure.progress import bar
from harness.measure.signals import STOPPED, one_way_to_stop
from harness.schema.failure import Failure
from harness.store.lock import hold
from harness.sweep.cells import VERSIONS
from harness.sweep.sweep import load
from sglang_specbench.arms import get_arm
from sglang_specbench.console import Console
from sglang_specbench.device import require
from sglang_specbench.errors import UserError
from sglang_specbench.models import Model

EXIT = {"pass": 0, "inconclusive": 3, "infrastructure": 5, "not attested": 4, "fail": 1}  # from good to bad


def audit(
    sweep: Annotated[str, typer.Argument(help="Sweep file or shipped sweep: its targets, drafters and server.")],
    arm: Annotated[list[str] | None, typer.Option(help="Arm to audit; may be repeated. Default: all it can.")] = None,
    prompt_set: Annotated[str, typer.Option("--set", help="Prompt set; default: the sweep's first.")] = "",
    samples: Annotated[int, typer.Option(help="Samples at temperature 1; as many beside.")] = 4000,
    again: Annotated[
        bool, typer.Option("--again", help="Audit anew what has passed with these weights, versions and samples.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the certificates.")] = Path("results/certificates"),
    server: Annotated[str, typer.Option(help="URL of a running server of the one --arm; none is started.")] = "",
    target_server: Annotated[str, typer.Option(help="With --server: URL of the target's own server.")] = "",
) -> None:
    """Does an arm still sample from the target's distribution."""
    loaded = load(sweep)
    if bool(server) != bool(target_server) or (server and len(arm or []) != 1):
        raise UserError("audit: --server, --target-server and one --arm go together", "give all three or none")
    for option, url in (("--server", server), ("--target-server", target_server)):
        if url and not url.startswith(("http://", "https://")):
            raise UserError(f"audit: {option} {url}: not a URL", "write http://HOST:PORT")
    if not server and importlib.util.find_spec("sglang") is None:
        raise UserError("audit needs SGLang", 'pip install "sglang-specbench[serve]"')
    chosen = prompt_set or next(iter(loaded.panel[0].sets))
    console = Console()
    serve = subjects.elsewhere(server, target_server) if server else subjects.here(out / "logs")
    if note := _few(samples):
        console.print(note, soft_wrap=True)
    todo = []
    for name in loaded.target:  # all of them, before the first is served
        subject = subjects.subject(loaded, name, serve, chosen, remote=bool(server))
        if not server:
            require(subject.launch.device, f"{loaded.where}: server.device:")
        prompts, skipped = subjects.prompt_ids(subject)
        if skipped:
            console.print(f"{name}: {skipped} prompts of {chosen} are too long for the audit and are left out")
        drafts = subjects.arms(loaded, name, arm or [], subject.launch.device)
        todo.append((replace(subject, skipped=skipped), prompts, drafts))
    try:
        with one_way_to_stop(), hold(out / "logs"), bar(console) as shown:
            auditor = Auditor(Design(samples=samples), out, again or bool(server), console, shown)
            verdicts = ["pass"]
            for subject, prompts, drafts in todo:
                verdicts += auditor.target(subject, prompts, drafts)
    except KeyboardInterrupt:
        console.print("stopped; certificates so far are kept: run the same command to go on")
        raise typer.Exit(STOPPED) from None
    raise typer.Exit(EXIT[max(verdicts, key=list(EXIT).index)])


def _few(samples: int) -> str:
    """A note on fewer samples than the default; `UserError` if no target is simple enough for so few."""
    least = least_samples(Design.level)
    if samples < least:
        hint = f"give at least {least:,}, or leave it out ({Design.samples:,})"
        raise UserError(f"audit: --samples {samples:,} cannot show a bias of {LARGEST_BIAS:g} on any target", hint)
    if samples < Design.samples:
        return f"note: --samples {samples:,} may end inconclusive: the mini target takes about 3,500"
    return ""


@dataclass
class Auditor:
    """Audits arm by arm; prints one line each, as it ends. ``again``: also what has passed already."""

    design: Design
    out: Path
    again: bool
    console: Console
    bar: Progress

    def target(
        self, subject: session.Subject, prompts: dict[str, Prefix], drafts: dict[str, Model | None]
    ) -> list[str]:
        """The verdicts of all arms of one target."""
        wanted = {a: d for a, d in drafts.items() if self.again or not self._passed(subject, a, d)}
        for arm in [a for a in drafts if a not in wanted]:
            self._say(f"{subject.name}/{arm}", "pass", "before, with these weights and versions (--again: once more)")
        if not wanted:
            return []
        task = self.bar.add_task(f"{subject.name}: the target distribution", total=len(wanted) * self.design.total)
        subject = replace(subject, seen=lambda count: self.bar.advance(task, count))
        try:
            known = session.reference(subject, prompts, self.design)
        except (session.NotAttested, Failure) as problem:
            verdict = "infrastructure" if isinstance(problem, Failure) else "not attested"
            self._say(f"{subject.name}: the target's own server", verdict, f"{problem}{self._logs(subject)}")
            return [verdict]
        verdicts = []
        for number, (arm, draft) in enumerate(wanted.items()):
            self.bar.update(task, description=f"{subject.name}/{arm}", completed=number * self.design.total)
            if not self.console.is_terminal:
                self.console.print(f"{subject.name}/{arm}: {number + 1} of {len(wanted)}")
            verdicts.append(self._arm(subject, arm, draft, known))
        return verdicts

    def _arm(self, subject: session.Subject, arm: str, draft: Model | None, known: Reference) -> str:
        try:
            found = session.audit(subject, arm, draft, known, self.design)
            device = str(found.attestation["device"])  # of a server elsewhere it need not be this machine's
            certificate_file.write(found, certificate_file.path(self.out, subject.name, arm, found.proposal, device))
            seen = f"would see a bias of {found.smallest_bias:.3f}"
            verdict, text = found.verdict, "; ".join((seen, *found.reasons))
        except session.NotAttested as reasons:
            verdict, text = "not attested", str(reasons)
        except Failure as failure:
            verdict, text = "infrastructure", f"{failure}{self._logs(subject)}"
        self._say(f"{subject.name}/{arm}", verdict, text)
        return verdict

    def _place(self, subject: session.Subject, arm: str) -> Path:
        return certificate_file.path(self.out, subject.name, arm, get_arm(arm).proposal(1), subject.launch.device)

    def _passed(self, subject: session.Subject, arm: str, draft: Model | None) -> bool:
        """Is there a passed certificate of just this, with at least as many samples."""
        place = self._place(subject, arm)
        if not place.is_file():
            return False
        found, launch = certificate_file.load(place), subject.launch
        asked = {
            "arm": arm,
            "target_digest": subject.target.digest,
            "draft_digest": draft.digest if draft else "",
            "versions": VERSIONS,
            "device": launch.device,
            "dtype": launch.dtype,
            "server": launch.extra,
        }
        alike = certificate_file.speaks_for(found, asked) and found["prompt_set"] == subject.prompt_set
        return alike and found["verdict"] == "pass" and found["samples"] >= self.design.total

    def _logs(self, subject: session.Subject) -> str:
        return "; is the URL right?" if subject.remote else f" (logs: {self.out / 'logs'})"

    def _say(self, what: str, verdict: str, text: str) -> None:
        self.console.print(Text.assemble(f"{what}: ", (verdict, "bold"), f" {text}"), soft_wrap=True)
