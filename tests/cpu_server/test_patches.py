"""Our patches against the installed SGLang, without a server: they fit, and their rules are its kernels' rules."""

import os
import subprocess
import sys

import pytest

from sglang_specbench.launch import STAND_IN

pytestmark = [pytest.mark.sglang, pytest.mark.slow]

_APPLY_ALL = """
import multiprocessing
if __name__ == "__main__":
    from sglang_specbench.launch import ServerConfig
    from sglang_specbench.serving import bootstrap
    from sglang_specbench.serving.patches.table import CPU, GATES, OF_ARM
    from sglang_specbench.serving.patching import APPLIED, apply
    import sglang.srt.managers.scheduler  # as in a scheduler process
    bootstrap.prepare_process(ServerConfig(arm="ar", proposal="none", device="cpu", target="t"))
    for patch in (*CPU, *OF_ARM.values()):
        apply(patch)
    assert len(APPLIED) == 3 + len(GATES) + len(CPU) + len(OF_ARM), APPLIED
"""

# Random p and q with zeros in them; coins away from the thresholds, so that float32 rounding cannot decide.
_SAME_AS_KERNEL = """
import torch
from sglang.kernels.ops.speculative.reject_sampling import chain_speculative_sampling_triton
from sglang_specbench.serving.patches.verification import chain_rule
draw = torch.Generator().manual_seed(0)
B, W, V = 64, 6, 37
def law(rows):
    weights = torch.rand(B, rows, V, generator=draw) ** 4
    return torch.where(torch.rand(B, rows, V, generator=draw) < 0.2, torch.zeros(()), weights).softmax(-1)
p, q = law(W), law(W - 1)
drafts = torch.multinomial(q.view(-1, V), 1, generator=draw).view(B, W - 1)
candidates = torch.cat([torch.zeros(B, 1, dtype=torch.long), drafts], dim=1)
coins, final = torch.rand(B, W - 1, generator=draw), torch.rand(B, generator=draw)
def run(rule):
    predicts, lengths = torch.full((B * W,), -1, dtype=torch.int32), torch.zeros(B, dtype=torch.int32)
    index = torch.full((B, W), -1, dtype=torch.int32)
    rule(predicts=predicts, accept_index=index, accept_token_num=lengths, candidates=candidates,
         retrive_index=torch.arange(B * W).view(B, W), retrive_next_token=None, retrive_next_sibling=None,
         uniform_samples=coins, uniform_samples_for_final_sampling=final, target_probs=p.clone(),
         draft_probs=q.clone(), threshold_single=1.0, threshold_acc=1.0, deterministic=True)
    return predicts, index, lengths
ours, theirs = run(chain_rule), run(chain_speculative_sampling_triton)
assert all(torch.equal(a, b) for a, b in zip(ours, theirs)), (ours, theirs)
assert len(set(ours[2].tolist())) > 2, "one length only: the draw tests nothing"
"""


def run(script: str, **env: str) -> None:
    common = {"SGLANG_USE_CPU_ENGINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(STAND_IN)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | common | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_patch_fits_the_installed_sglang() -> None:
    run(_APPLY_ALL)


def test_chain_rule_is_the_kernel_s_in_the_triton_interpreter() -> None:
    run(_SAME_AS_KERNEL, TRITON_INTERPRET="1")
