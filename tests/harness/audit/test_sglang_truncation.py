"""SGLang's two ways to cut a distribution, in its sampler and in its verification, against ours.

With top-k or top-p alone they agree. With both they do not: the sampler applies top-p to the whole distribution,
verification to what top-k left, renormalised. Which is why the audit sets one at a time, and why this test is here:
when it fails, SGLang has made its mind up.
"""

from types import SimpleNamespace

import pytest
import torch

from drafters.verify import processed_target

pytestmark = [pytest.mark.torch, pytest.mark.sglang]
V = 40
LOGITS = torch.randn(1, V, generator=torch.Generator().manual_seed(0)) * 1.5


def verification(top_k, top_p):
    from sglang.srt.speculative.dflash_utils import build_speculative_verify_target_probs

    info = SimpleNamespace(
        need_top_k_sampling=top_k < V,
        need_top_p_sampling=top_p < 1,
        temperatures=torch.ones(1, 1),
        top_ks=torch.tensor([top_k]),
        top_ps=torch.tensor([top_p]),
    )
    probs = build_speculative_verify_target_probs(next_token_logits=LOGITS, sampling_info=info, draft_token_num=1, bs=1)
    return probs[0, 0]


def sampler(top_k, top_p):
    """What SGLang's own torch sampler draws from."""
    from sglang.srt.layers.sampler import top_k_top_p_min_p_sampling_from_probs_torch

    _, weights, tokens, _ = top_k_top_p_min_p_sampling_from_probs_torch(
        LOGITS.softmax(-1), torch.tensor([top_k]), torch.tensor([top_p]), torch.zeros(1),
        need_min_p_sampling=False, sampling_seed=None, positions=None, return_filtered_probs=True,
    )  # fmt: skip
    return torch.zeros(V).scatter(0, tokens[0].long(), weights[0] / weights.sum())


def support(p):
    return set(p.nonzero()[:, 0].tolist())


@pytest.mark.parametrize(("top_k", "top_p"), [(8, 1.0), (V, 0.8)])
def test_one_cut_is_the_same_everywhere(top_k, top_p):
    ours = processed_target(LOGITS[0], 1.0, top_k if top_k < V else -1, top_p)
    torch.testing.assert_close(verification(top_k, top_p).double(), ours, atol=1e-6, rtol=0)
    torch.testing.assert_close(sampler(top_k, top_p).double(), ours, atol=1e-6, rtol=0)


def test_both_cuts_come_in_two_orders():
    ours = processed_target(LOGITS[0], 1.0, 12, 0.75)
    torch.testing.assert_close(verification(12, 0.75).double(), ours, atol=1e-6, rtol=0)
    assert support(ours) != support(sampler(12, 0.75))
