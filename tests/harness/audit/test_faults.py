"""The audit on simulated requests: it passes the exact rule, and fails each of the four silent faults.

The odds: 3 position tests, one joint and one of the likeliest token, Holm-corrected to 1e-4 together, so the exact rule
fails by chance once in ten thousand seeds; the seed is fixed. A fault would pass by chance with odds below 1e-3 (the
tests print p < 1e-7).
"""

import numpy as np
import pytest
import torch

from drafters.model.draw import draw
from harness.audit.chisquare import holm, joint_test, likeliest_test, position_test
from harness.audit.target_distribution import TargetDistribution
from tests.harness.audit.faulty import FAULTS, exact

pytestmark = pytest.mark.torch
V, D, LENGTH, N, LEVEL = 10, 4, 4, 6000, 1e-4


def markov(seed, spread, near=None):
    """p(next | previous) [V, V]; ``near`` another such table, mixed in, as a drafter is near its target."""
    logits = torch.randn(V, V, generator=torch.Generator().manual_seed(seed)).double() * spread
    own = torch.softmax(logits, -1)
    return own if near is None else torch.softmax(0.75 * near.log() + 0.25 * own.log(), -1)


P = markov(1, 1.2)
Q = markov(2, 1.2, near=P)


def serve(rule, n=N, seed=5):
    """``n`` requests of LENGTH tokens by blocks of D drafts; returns the tokens [n, LENGTH] and tau."""
    generator = torch.Generator().manual_seed(seed)
    out = torch.zeros(n, LENGTH + D + 1, dtype=torch.long)
    out[:, 0] = draw(P[0].expand(n, V), torch.rand(n, generator=generator).double())  # the prefill's token
    length, rows, blocks = torch.ones(n, dtype=torch.long), torch.arange(n), 0
    emitted = 0
    while (length < LENGTH).any():
        chain = [out[rows, length - 1]]
        for _ in range(D):
            chain.append(draw(Q[chain[-1]], torch.rand(n, generator=generator).double()))
        chain = torch.stack(chain, 1)
        coins = torch.rand(n, D + 1, generator=generator).double()
        accepted, token = rule(chain[:, 1:], P[chain], Q[chain[:, :-1]], coins[:, :D], coins[:, D])
        running = length < LENGTH
        emitted += int((accepted + 1)[running].sum())
        blocks += int(running.sum())
        for slot in range(D):
            write = running & (slot < accepted)
            out[write, length[write] + slot] = chain[write, slot + 1]
        out[rows[running], (length + accepted)[running]] = token[running]
        length = torch.where(running, length + accepted + 1, length)
    return [tuple(row) for row in out[:, :LENGTH].tolist()], emitted / blocks


def exact_distribution():
    table = P.tolist()
    prefixes = [()] + [tuple(p) for k in range(1, LENGTH) for p in np.ndindex(*(V,) * k)]
    ranked = [dict(sorted(enumerate(p), key=lambda item: -item[1])) for p in table]
    return TargetDistribution({x: ranked[x[-1] if x else 0] for x in prefixes})


def adjusted(rule):
    samples, tau = serve(rule)
    target = exact_distribution()
    tests = [position_test(f"token {j + 1}", samples, target, j) for j in range(1, LENGTH)]
    tests.append(joint_test("joint", samples, target, 2))
    tests.append(likeliest_test("likeliest", samples, target, 1))
    return holm(tests), tau


def test_the_exact_rule_passes():
    ps, _ = adjusted(exact)
    assert min(ps) > LEVEL


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_each_silent_fault_fails_while_tau_hardly_moves(fault):
    ps, tau = adjusted(fault)
    _, right = serve(exact)
    assert min(ps) < 1e-7
    assert abs(tau / right - 1) < 0.1, tau / right
