"""SGLang's two ways to cut a distribution, in its sampler and in its verification, against ours.

With top-k or top-p alone they agree. With both they do not: the sampler applies top-p to the whole distribution,
verification to what top-k left, renormalised. Which is why the audit sets one at a time, and why this test is here:
when it fails, SGLang has made its mind up.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from harness.audit.target_distribution import SamplingRule, processed
from sglang_specbench.launch import STAND_IN

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
SETTINGS = [(8, 1.0), (40, 0.8), (12, 0.75)]  # the last sets both

# Prints, for each setting, what the verification and the sampler draw from: [2, V] probabilities.
_BOTH = """
import json, sys, types, torch
from sglang.srt.layers.sampler import top_k_top_p_min_p_sampling_from_probs_torch as sample
from sglang.srt.speculative.dflash_utils import build_speculative_verify_target_probs as build
logits = torch.tensor([json.loads(sys.argv[1])])
for k, p in json.loads(sys.argv[2]):
    info = types.SimpleNamespace(need_top_k_sampling=k < logits.shape[1], need_top_p_sampling=p < 1,
        temperatures=torch.ones(1, 1), top_ks=torch.tensor([k]), top_ps=torch.tensor([p]))
    verify = build(next_token_logits=logits, sampling_info=info, draft_token_num=1, bs=1)[0, 0]
    _, weights, tokens, _ = sample(logits.softmax(-1), info.top_ks, info.top_ps, torch.zeros(1),
        need_min_p_sampling=False, sampling_seed=None, positions=None, return_filtered_probs=True)
    drawn = torch.zeros(logits.shape[1]).scatter(0, tokens[0].long(), weights[0] / weights.sum())
    print(json.dumps([verify.tolist(), drawn.tolist()]))
"""


@pytest.fixture(scope="module")
def cuts():
    """For each setting: ours, SGLang's verification, SGLang's sampler."""
    logits = np.sort(np.random.default_rng(0).normal(size=40) * 1.5)[::-1]
    env = os.environ | {"SGLANG_USE_CPU_ENGINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(STAND_IN)}
    command = [sys.executable, "-c", _BOTH, json.dumps(logits.tolist()), json.dumps(SETTINGS)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = [np.array(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[[")]
    logprobs = logits - np.log(np.exp(logits).sum())
    ours = [processed(logprobs, SamplingRule(top_k=k if k < 40 else -1, top_p=p)) for k, p in SETTINGS]
    return list(zip(ours, theirs, strict=True))


def test_one_cut_is_the_same_everywhere(cuts):
    for ours, (verification, sampler) in cuts[:2]:
        np.testing.assert_allclose(verification, ours, atol=1e-6)
        np.testing.assert_allclose(sampler, ours, atol=1e-6)


def test_both_cuts_come_in_two_orders(cuts):
    ours, (verification, sampler) = cuts[2]
    np.testing.assert_allclose(verification, ours, atol=1e-6)
    assert set(np.flatnonzero(verification)) < set(np.flatnonzero(sampler))
