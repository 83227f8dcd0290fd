"""The four silent ways to lose exactness, planted in a real server: ``SPECBENCH_TEST_PATCH=faults:NAME``.

Each wraps the two rules that verify samples on a CPU (`sglang_specbench.serving.patches.verification`), which SGLang
calls with keyword arguments, and makes one thing wrong. The second and the fourth do so in some blocks only: in all of
them, the acceptance length alone would give them away. Such a server attests the test patch and cannot be measured;
tests/cpu_server/test_audit.py audits its answers all the same.
"""

import importlib
from collections.abc import Callable
from typing import Any

import torch

from sglang_specbench.serving.patches import verification

Call = dict[str, Any]  # keyword arguments of a rule: B requests, W window, V vocabulary
RULES = (
    ("sglang.srt.speculative.dflash_utils", "tree_speculative_sampling_target_only", verification.point_mass_rule),
    (
        "sglang.kernels.ops.speculative.dspark.dspark_accept",
        "chain_speculative_sampling_triton",
        verification.chain_rule,
    ),
)


def resample_from_p() -> None:
    """A rejected slot is redrawn from p instead of the residual."""
    _plant(after=lambda call: _redraw(call, call["accept_token_num"] < call["candidates"].shape[1] - 1))


def accept_by_rank() -> None:
    """The first draft of one block in four passes if it is among the target's three likeliest: its coin becomes 0."""

    def before(call: Call) -> None:
        top = call["target_probs"][:, 0].topk(3, -1).indices
        ranked = (top == call["candidates"][:, 1, None]).any(-1) & (torch.rand(len(top)) < 0.25)
        call["uniform_samples"][ranked, 0] = 0.0

    _plant(before=before)


def q_not_the_sampled() -> None:
    """The verifier gets a sharper q than the one that was drawn from; only sampled proposals have a q."""

    def before(call: Call) -> None:
        sharper = call["draft_probs"] ** 2
        call["draft_probs"].copy_(sharper / sharper.sum(-1, keepdim=True).clamp_min(1e-30))

    _plant(before=before)


def verify_unless_likely() -> None:
    """Of the blocks that start with the target's likeliest token half are not verified: the next token is drawn from p.

    No bias with argmax proposals, whose draft is a function of the prefix.
    """

    def after(call: Call) -> None:
        likely = call["candidates"][:, 1] == call["target_probs"][:, 0].argmax(-1)
        likely &= torch.rand(len(likely)) < 0.5
        call["accept_token_num"][likely] = 0
        _redraw(call, likely)

    _plant(after=after)


def _redraw(call: Call, rows: torch.Tensor) -> None:
    """The token after the accepted drafts of ``rows`` comes from p."""
    row, length = rows.nonzero()[:, 0], call["accept_token_num"][rows].long()
    cdf = call["target_probs"][row, length].double().cumsum(-1)
    coin = torch.rand(len(row), 1).double()
    token = torch.searchsorted(cdf, coin * cdf[:, -1:], right=True)[:, 0]
    call["predicts"][call["retrive_index"][row, length].long()] = token.to(call["predicts"].dtype)


def _plant(before: Callable[[Call], None] = lambda _: None, after: Callable[[Call], None] = lambda _: None) -> None:
    for module, name, rule in RULES:

        def planted(rule: Callable[..., None] = rule, **call: Any) -> None:
            before(call)
            rule(**call)
            after(call)

        setattr(importlib.import_module(module), name, planted)
