"""A certificate as a Markdown page for people."""

from collections.abc import Iterator

from harness.audit.certificate import Certificate
from harness.audit.chisquare import POWER, holm


def page(certificate: Certificate) -> str:
    """The page; ends with a newline."""
    return "\n".join([*_head(certificate), *_greedy(certificate), *_sampled(certificate), *_seeds(certificate)]) + "\n"


def _head(c: Certificate) -> Iterator[str]:
    seen = c.attestation
    yield f"# {c.target} / {c.arm} ({c.proposal}): {c.verdict}"
    yield ""
    yield from (f"- **{reason}**" for reason in c.reasons)
    yield f"- audited {c.date} on weights that are on this machine since {c.weights_date}"
    yield f"- {', '.join(f'{k} {v}' for k, v in c.versions.items())}, {seen.get('device')}, {seen.get('dtype')}"
    yield f"- target `{c.target_digest[:16]}`, drafter `{c.draft_digest[:16] or 'none'}`"
    yield f"- {c.samples} samples; the tests of sampled tokens fail an exact arm with odds of about {c.false_alarm:g}"
    yield f"- sampled after {c.place.after} greedy tokens of the answer to `{c.place.prompt}` (set {c.prompt_set})"
    if c.skipped:
        yield f"- {c.skipped} prompts of the set were too long for the audit's context and were left out"
    yield f"- deep: after {c.deep.after} of that to `{c.deep.prompt}`, in doubt from token {c.deep.sure + 1} on"
    yield (
        f"- caught with probability {POWER:g}: a total variation of {c.smallest_bias:.3f} between the cells of any "
        "token's test in the largest sample; each test's own is in the table"
    )
    for old in c.earlier:
        yield f"- replaces {old['verdict']} of {old['date']} ({old['samples']} samples)"


def _greedy(c: Certificate) -> Iterator[str]:
    yield "\n## Temperature 0, token for token against autoregressive decoding\n"
    yield "| concurrency | prompts | tokens compared | differences | of these bugs | AR against itself |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for g in c.greedy:
        control = "" if g.control is None else len(g.control)
        cells = (g.concurrency, g.prompts, g.tokens, len(g.divergences), len(g.bugs), control)
        yield f"| {' | '.join(map(str, cells))} |"


def _sampled(c: Certificate) -> Iterator[str]:
    yield "\n## Sampled tokens against the target distribution\n"
    yield "| test | samples | df | chi-square | p | p corrected | TV seen | smallest caught |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    level = c.false_alarm / len(c.tests)
    for test, p in zip(c.tests, holm(c.tests), strict=True):
        least = f"{test.smallest_bias(level):.3f}" if test.df else ""
        yield (
            f"| {test.name} | {test.samples} | {test.df} | {test.statistic:.1f} | {test.p:.3g} | {p:.3g} "
            f"| {test.tv:.4f} | {least} |"
        )
    yield ""
    for s in c.sampled:
        tau = f"tau {s.tau:.2f}: {s.accepted} drafts accepted in {s.blocks} blocks" if s.tau else "no blocks"
        yield f"- {s.setting}, concurrency {s.concurrency}: {tau}"


def _seeds(c: Certificate) -> Iterator[str]:
    yield "\n## Seeds\n"
    if c.seeds is None:
        yield "Not looked at: the server was not ours to restart."
    else:
        yield f"- one seed, two fresh servers: {'the same samples' if c.seeds.repeats else 'DIFFERENT samples'}"
        yield f"- another seed: {'other samples' if c.seeds.differs else 'THE SAME samples'}"
