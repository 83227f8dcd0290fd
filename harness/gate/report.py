"""The gate's answer in the forms that people and CI systems read: Markdown, annotations, JUnit XML, JSON.

Names come from run folders of other people, so everything is escaped for the format it goes into.
"""

import json
from dataclasses import asdict
from xml.etree import ElementTree

from harness.gate.judgement import Judgement
from harness.gate.verdict import GateOutcome

_SIGN = {"ok": "ok", "regression": "**REGRESSION**", "inconclusive": "inconclusive", "invalid": "invalid"}


def markdown(outcome: GateOutcome, baseline: str, candidate: str) -> str:
    """Summary for a pull request: pooled verdicts, the settings behind a failure, and what could not be compared."""
    lines = [f"### specbench gate: {outcome.verdict}", "", f"candidate `{candidate}` against baseline `{baseline}`", ""]
    if outcome.troubles:
        lines += ["| exit | why |", "|---|---|"]
        lines += [f"| {t.code} | {_cell(t.reason)} |" for t in outcome.troubles]
    pooled = [j for j in outcome.judgements if j.scope == "pooled"]
    if pooled:
        lines += [
            "| target | arm | metric | change | interval | margin | n | verdict |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [_line(j) for j in pooled]
    for failed in outcome.failed:
        lines += ["", f"{_cell(failed.arm)}, {failed.metric}, by setting (largest drop first):", ""]
        behind = [
            j for j in outcome.judgements if (j.target, j.arm, j.metric) == (failed.target, failed.arm, failed.metric)
        ]
        worst = sorted((j for j in behind if j.scope != "pooled"), key=lambda j: j.effect)
        lines += [f"- {_cell(j.scope)}: {j.effect:+.2%} [{j.low:+.2%}, {j.high:+.2%}]" for j in worst]
    if outcome.notes:
        lines += ["", *(f"- {_cell(note)}" for note in outcome.notes)]
    return "\n".join(lines) + "\n"


def _line(j: Judgement) -> str:
    note = f" ({_cell(j.note)})" if j.note else ""
    return (
        f"| {_cell(j.target)} | {_cell(j.arm)} | {j.metric} | {j.effect:+.2%} | [{j.low:+.2%}, {j.high:+.2%}] "
        f"| {j.margin:.1%} | {j.n} | {_SIGN[j.verdict]}{note} |"
    )


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def annotations(outcome: GateOutcome) -> list[str]:
    """GitHub Actions workflow commands, one per failed pooled judgement or trouble."""
    errors = [f"{j.target}/{j.arm}: {j.metric} {j.effect:+.2%} [{j.low:+.2%}, {j.high:+.2%}]" for j in outcome.failed]
    errors += [t.reason for t in outcome.troubles]
    return [f"::error title=specbench gate::{_command(e)}" for e in errors]


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit(outcome: GateOutcome) -> str:
    """JUnit XML: one test case per pooled judgement; troubles are errors, an open question is a skip."""
    suite = ElementTree.Element("testsuite", name="specbench gate")
    for trouble in outcome.troubles:
        case = ElementTree.SubElement(suite, "testcase", classname="specbench.gate", name="comparable")
        ElementTree.SubElement(case, "error", message=_printable(trouble.reason))
    for j in (j for j in outcome.judgements if j.scope == "pooled"):
        name = _printable(f"specbench.gate.{j.target}.{j.arm}")
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=j.metric)
        text = f"{j.effect:+.2%} [{j.low:+.2%}, {j.high:+.2%}], margin {j.margin:.1%}"
        if j.verdict == "regression":
            ElementTree.SubElement(case, "failure", message=text)
        elif j.verdict != "ok":
            ElementTree.SubElement(case, "skipped", message=f"{j.verdict}: {text}")
    for kind in ("failure", "error", "skipped"):
        suite.set(f"{kind}s" if kind != "skipped" else kind, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """XML 1.0 has no place for control characters, not even escaped."""
    return "".join(c if c >= " " or c in "\t\n" else "?" for c in text)


def machine(outcome: GateOutcome) -> str:
    """Everything, as JSON; infinities (no interval) are null."""

    def finite(value: object) -> object:
        return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value

    judgements = [{k: finite(v) for k, v in asdict(j).items()} for j in outcome.judgements]
    data = {"verdict": outcome.verdict, "exit_code": outcome.exit_code, "judgements": judgements,
            "troubles": [asdict(t) for t in outcome.troubles], "notes": list(outcome.notes)}  # fmt: skip
    return json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + "\n"
