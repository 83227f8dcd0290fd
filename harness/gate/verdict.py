"""The gate: every arm's judgements on tau and throughput, and the one exit code.

tau is judged over prompts (its noise is small), throughput over allocations relative to AR (its noise is large); AR's
own throughput is judged as it is, and when it fell the arms' verdicts stand beside that fact. The false-alarm rate is
shared out over all pooled comparisons and looks; single settings are shown, and named when a pooled verdict fails, but
do not decide. What was planned and is absent leaves a verdict open at best: nothing is ok over it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.gate.effects import pooled_logs, tau_effect, throughput_effect
from harness.gate.judgement import Effect, Judgement, judge, spent
from harness.gate.match import shared, speeds, tau_changes, text_of
from harness.gate.troubles import INCONCLUSIVE, INVALID, Trouble, differences, troubles
from harness.stats.results import Results
from harness.stats.setting import Setting

DAGGER = "\N{DAGGER}"
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
class GateOutcome:
    """The gate's answer; ``judgements`` hold pooled ones first."""

    verdict: str
    judgements: tuple[Judgement, ...]
    troubles: tuple[Trouble, ...] = ()
    notes: tuple[str, ...] = ()  # what differs between the runs and may, unaudited arms

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]

    @property
    def failed(self) -> tuple[Judgement, ...]:
        """Pooled judgements that are regressions."""
        return tuple(j for j in self.judgements if j.scope == "pooled" and j.verdict == "regression")


def gate(baseline: Results, candidate: Results, rules: Rules) -> GateOutcome:
    """Judge ``candidate``."""
    found = troubles(baseline, candidate, "throughput" in rules.metrics)
    notes = (*differences(baseline, candidate), *_unaudited(baseline, candidate))
    if found and found[0].code != INCONCLUSIVE:
        verdict = "invalid" if found[0].code == INVALID else "infrastructure"
        return GateOutcome(verdict=verdict, judgements=(), troubles=tuple(found), notes=notes)
    settings = shared(baseline, candidate)
    arms = sorted({(s.target, s.arm) for s in settings})
    level = spent(rules.alpha, len(rules.metrics) * len(arms), rules.looks)
    of = {arm: [s for s in settings if (s.target, s.arm) == arm] for arm in arms}
    judged = [j for arm in arms for j in _judge_arm(baseline, candidate, of[arm], rules, level)]
    judged.sort(key=lambda j: j.scope != "pooled")
    verdicts = [*(j.verdict for j in judged if j.scope == "pooled"), *("inconclusive" for _ in found)]
    return GateOutcome(verdict=_worst(verdicts), judgements=tuple(judged), troubles=tuple(found), notes=notes)


def _unaudited(baseline: Results, candidate: Results) -> list[str]:
    """Arms whose numbers stand without a passed audit."""
    return [
        f"{DAGGER} {arm} of the {who}: {mark}"
        for who, results in (("baseline", baseline), ("candidate", candidate))
        for arm, mark in sorted(results.unaudited.items())
    ]


def _worst(verdicts: Iterable[str]) -> str:
    seen = set(verdicts)
    return next((v for v in ("regression", "inconclusive", "ok") if v in seen), "invalid")


def _judge_arm(
    baseline: Results, candidate: Results, settings: Sequence[Setting], rules: Rules, level: float
) -> list[Judgement]:
    """Every judgement on the one arm whose ``settings`` these are."""
    judged, first = [], settings[0]
    changes = tau_changes(baseline, candidate, settings)
    if changes and "tau" in rules.metrics:
        margin = -math.log1p(-rules.tau_margin)
        effect = tau_effect(list(changes.values()))
        judged.append(_judgement(effect, margin, level, first, "tau", "pooled", int(effect.df) + 1))
        for setting, change in changes.items():
            one = tau_effect([change])
            judged.append(_judgement(one, margin, level, first, "tau", text_of(setting), len(change.prompts)))
    if "throughput" in rules.metrics:
        judged += _judge_throughput(baseline, candidate, settings, rules, level)
    return judged


def _judge_throughput(
    baseline: Results, candidate: Results, settings: Sequence[Setting], rules: Rules, level: float
) -> list[Judgement]:
    old, new = (speeds(results, settings) for results in (baseline, candidate))
    margin = -math.log1p(-rules.throughput_margin)
    judged = []
    for setting in (None, *settings):  # None: pooled
        own = {key: v for key, v in old.items() if setting in (None, key[1])}
        before, after = pooled_logs(own, new)
        if not len(before):  # and so neither side: only settings that both measured count
            continue
        note = ""
        try:
            effect = throughput_effect(before, after)
        except ValueError as error:
            note, effect = str(error), Effect(value=float(after.mean() - before.mean()), se=math.inf, df=1)
        scope = text_of(setting) if setting else "pooled"
        judged.append(_judgement(effect, margin, level, settings[0], "throughput", scope, len(after), note))
    return judged


def _judgement(
    effect: Effect, margin: float, level: float, of: Setting, metric: str, scope: str, n: int, note: str = ""
) -> Judgement:
    verdict, low, high = judge(effect, margin, level)
    if not note and verdict == "ok" and high < 0:
        note = "a real drop, smaller than the margin"
    change, low, high = (math.expm1(x) for x in (effect.value, low, high))
    return Judgement(
        target=of.target, arm=of.arm, metric=metric, scope=scope, verdict=verdict, effect=change, low=low, high=high,
        margin=-math.expm1(-margin), alpha=level, n=n, note=note,
    )  # fmt: skip
