"""The gate: every arm's judgements on tau and throughput, and the one exit code.

tau is judged over prompts (its noise is small), throughput over allocations relative to AR (its noise is large); AR's
own throughput is judged as it is, and when it fell the arms' verdicts stand beside that fact. The false-alarm rate is
shared out over all pooled comparisons and looks; single settings are shown, and named when a pooled verdict fails, but
do not decide.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.gate.effects import pooled_logs, tau_effect, throughput_effect
from harness.gate.judgement import Effect, Judgement, judge, spent
from harness.gate.match import Trouble, relative, tau_changes, throughputs, troubles, unlike

if TYPE_CHECKING:
    from harness.store.run import Frames

METRICS = ("tau", "throughput")
EXIT = {"ok": 0, "regression": 1, "inconclusive": 3, "invalid": 4, "infrastructure": 5}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the gate is asked to hold. Margins are relative drops; ``looks`` counts planned looks at the data."""

    metrics: tuple[str, ...] = METRICS
    alpha: float = 0.01
    tau_margin: float = 0.01
    throughput_margin: float = 0.03
    looks: int = 1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The gate's answer; ``judgements`` hold pooled ones first."""

    verdict: str
    judgements: tuple[Judgement, ...]
    troubles: tuple[Trouble, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]

    @property
    def failed(self) -> tuple[Judgement, ...]:
        """Pooled judgements that are regressions."""
        return tuple(j for j in self.judgements if j.scope == "pooled" and j.verdict == "regression")


def gate(baseline: "Frames", candidate: "Frames", rules: Rules) -> Outcome:
    """Judge ``candidate``."""
    trouble = troubles(candidate) or unlike(baseline, candidate)
    if trouble:
        verdict = "invalid" if trouble[0].code == EXIT["invalid"] else "infrastructure"
        return Outcome(verdict=verdict, judgements=(), troubles=tuple(trouble))
    shared = _arms(baseline) & _arms(candidate)
    level = spent(rules.alpha, len(rules.metrics) * len(shared), rules.looks)
    judged = [j for target, arm in sorted(shared) for j in _judge_arm(baseline, candidate, target, arm, rules, level)]
    judged.sort(key=lambda j: j.scope != "pooled")
    return Outcome(verdict=_worst(j.verdict for j in judged if j.scope == "pooled"), judgements=tuple(judged))


def _arms(frames: "Frames") -> set[tuple[str, str]]:
    ok = frames.cells[frames.cells.outcome == "ok"]
    return set(zip(ok.target, ok.arm, strict=True))


def _worst(verdicts: Iterable[str]) -> str:
    seen = set(verdicts)
    return next((v for v in ("regression", "inconclusive", "ok") if v in seen), "invalid")


def _judge_arm(
    baseline: "Frames",
    candidate: "Frames",
    target: str,
    arm: str,
    rules: Rules,
    level: float,
) -> list[Judgement]:
    judged = []
    changes = tau_changes(baseline, candidate, target, arm)
    if changes and "tau" in rules.metrics:
        margin = -math.log1p(-rules.tau_margin)
        effect = tau_effect(list(changes.values()))
        judged.append(_judgement(effect, margin, level, target, arm, "tau", "pooled", int(effect.df) + 1))
        for setting, change in changes.items():
            one = tau_effect([change])
            judged.append(_judgement(one, margin, level, target, arm, "tau", setting, len(change.prompts)))
    if "throughput" in rules.metrics:
        judged += _judge_throughput(baseline, candidate, target, arm, rules, level)
    return judged


def _judge_throughput(
    baseline: "Frames",
    candidate: "Frames",
    target: str,
    arm: str,
    rules: Rules,
    level: float,
) -> list[Judgement]:
    old, new = (_speeds(frames, target, arm) for frames in (baseline, candidate))
    margin = -math.log1p(-rules.throughput_margin)
    judged = []
    for scope in ("pooled", *sorted({s for _, s in old} & {s for _, s in new})):
        own = {key: v for key, v in old.items() if scope in ("pooled", key[1])}
        before, after = pooled_logs(own, new)
        if not len(before) or not len(after):
            continue
        note = ""
        try:
            effect = throughput_effect(before, after)
        except ValueError as error:
            note, effect = str(error), Effect(value=float(after.mean() - before.mean()), se=math.inf, df=1)
        judged.append(_judgement(effect, margin, level, target, arm, "throughput", scope, len(after), note))
    return judged


def _speeds(frames: "Frames", target: str, arm: str) -> dict[tuple[str, str], float]:
    """Speedup over AR; tokens per second for AR itself."""
    own = throughputs(frames, target, arm)
    return own if arm == "ar" else relative(own, throughputs(frames, target, "ar"))


def _judgement(
    effect: Effect, margin: float, level: float, target: str, arm: str, metric: str, scope: str, n: int, note: str = ""
) -> Judgement:
    verdict, low, high = judge(effect, margin, level)
    if not note and verdict == "ok" and high < 0:
        note = "a real drop, smaller than the margin"
    change, low, high = (math.expm1(x) for x in (effect.value, low, high))
    return Judgement(
        target=target, arm=arm, metric=metric, scope=scope, verdict=verdict, effect=change, low=low, high=high,
        margin=-math.expm1(-margin), alpha=level, n=n, note=note,
    )  # fmt: skip
