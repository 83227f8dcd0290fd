"""The arms: what each one is to SGLang, what proves that it runs, and what is known to be approximate about it.

One row of data per arm; nothing here starts or reads anything. Flags, environment and proofs were read from SGLang
0.5.23 (``arg_groups/speculative_hook.py``, ``speculative/dflash_worker_v2.py``, ``speculative/lilicorr_utils.py``,
``speculative/dspark_components``).

A *proposal* says how a slot is committed: ``argmax`` (a point mass) or ``sampled`` (from q, which the verifier gets).
At temperature 0 every drafter commits the argmax; at temperature 1 the arm's row says which of the two it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

Proposal = Literal["none", "argmax", "sampled"]
DRAFTED, WINDOW = 15, 16  # slots drafted and positions verified by every block arm (paper, Table 4)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One competitor. ``flags``/``env`` hold for both proposals; ``*_env`` only for that proposal."""

    name: str
    title: str
    algorithm: str = ""  # --speculative-algorithm; "" is autoregressive decoding
    checkpoint: str = ""  # which trained drafter it loads: a key of the sweep's [target.*.drafters]; "" = none
    architectures: tuple[str, ...] = ()  # architectures[0] that the checkpoint's config.json may name
    head: str = ""  # draft-sampler class folded into the draft CUDA graph; "" = no block head
    sampling: Proposal = "argmax"  # proposal at temperature > 0
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    argmax_env: Mapping[str, str] = field(default_factory=dict)
    sampled_env: Mapping[str, str] = field(default_factory=dict)
    argmax_log: tuple[str, ...] = ()  # regular expressions that a CUDA server's log must contain
    sampled_log: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()  # plugin patches that must be attested as applied
    approximations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # "cuda", "confidence_head", "sps_table", "draft_model"

    def proposal(self, temperature: float) -> Proposal:
        """How this arm commits a slot at ``temperature``."""
        if not self.algorithm:
            return "none"
        return "argmax" if temperature == 0 else self.sampling

    def worker_proposal(self, proposal: Proposal) -> Proposal:
        """What the worker of a server launched for ``proposal`` does at temperature > 0.

        DFlash2's server is the same for both: it samples, and takes the argmax of rows at temperature 0.
        """
        if proposal == "argmax" and self.environment("argmax") == self.environment("sampled"):
            return self.sampling
        return proposal

    def environment(self, proposal: Proposal) -> dict[str, str]:
        """Environment variables that the server of this arm and proposal needs."""
        extra = {"argmax": self.argmax_env, "sampled": self.sampled_env, "none": {}}[proposal]
        return {**self.env, **extra}

    def proof(self, proposal: Proposal) -> tuple[str, ...]:
        """Log patterns that a CUDA server must print before a cell of this arm may be measured."""
        return self.sampled_log if proposal == "sampled" else self.argmax_log


_DFLASH = ("--speculative-num-draft-tokens", str(WINDOW))
_DSPARK = ("--speculative-dspark-block-size", str(DRAFTED))
_GREEDY_DSPARK = {"SGLANG_DSPARK_USE_GREEDY_DRAFT": "1"}
_SAMPLED_LILICORR = {"SGLANG_ENABLE_LILICORR_SAMPLING": "1", "SGLANG_LILICORR_REQUIRE_SAMPLING": "1"}
_ANCHOR = "above concurrency 1 a block after a batch change may use a neighbour's anchor row (costs tau only)"
_FOLDED_LILICORR = r"LiLiCorr select folded into the draft cuda graph"


def _lilicorr(name: str, title: str, **changes: object) -> Arm:
    row: dict[str, object] = {
        "algorithm": "DFLASH",
        "checkpoint": "lilicorr",
        "architectures": ("LiLiCorrDraftModel",),
        "head": "LiLiCorrDraftSampler",
        "sampling": "sampled",
        "flags": _DFLASH,
        "sampled_env": _SAMPLED_LILICORR,
        "argmax_log": (r"LiLiCorr draft commit: greedy", _FOLDED_LILICORR),
        "sampled_log": (r"LiLiCorr draft commit: sampled", _FOLDED_LILICORR),
        "approximations": (_ANCHOR,),
    }
    return Arm(name=name, title=title, **{**row, **changes})  # type: ignore[arg-type]


def _dflash2(name: str, title: str, **changes: object) -> Arm:
    row: dict[str, object] = {
        "algorithm": "DFLASH",
        "checkpoint": "dflash2",
        "architectures": ("DFlash2DraftModel",),
        "head": "_SelectorDraftSampler",
        "sampling": "sampled",
        "flags": _DFLASH,
        "argmax_log": (r"DFLASH selector decode folded .*sampling_enabled=True",),
        "sampled_log": (r"DFLASH selector decode folded .*sampling_enabled=True",),
    }
    return Arm(name=name, title=title, **{**row, **changes})  # type: ignore[arg-type]


def _domino(name: str, title: str, pool: int, approximations: tuple[str, ...]) -> Arm:
    return Arm(
        name=name,
        title=title,
        algorithm="DFLASH",
        checkpoint="domino",
        architectures=("DFlashDraftModel",),
        head="_DominoDraftSampler",
        flags=(*_DFLASH, "--speculative-domino-candidate-pool-size", str(pool)),
        argmax_log=(
            r"DFLASH Domino rollout folded",
            rf"Domino rollout enabled .*candidate pool size={pool}\b",
        ),
        approximations=approximations,
    )


def _dspark(name: str, title: str, **changes: object) -> Arm:
    row: dict[str, object] = {
        "algorithm": "DSPARK",
        "checkpoint": "dspark",
        "architectures": ("Qwen3DSparkModel", "DSparkDraftModel"),
        "head": "DsparkDraftSampler",
        "sampling": "sampled",
        "flags": _DSPARK,
        "argmax_env": _GREEDY_DSPARK,
        "argmax_log": (r"DSpark draft proposal \(greedy draft\) folded",),
        "sampled_log": (r"DSpark draft proposal \(sampling\) folded",),
    }
    return Arm(name=name, title=title, **{**row, **changes})  # type: ignore[arg-type]


_ROWS = (
    Arm(name="ar", title="AR"),
    Arm(
        name="dflash",
        title="DFlash",
        algorithm="DFLASH",
        checkpoint="dflash",
        architectures=("DFlashDraftModel",),
        head="_DflashDraftSampler",
        flags=_DFLASH,
        argmax_log=(r"DFLASH draft greedy head folded",),
    ),
    _dflash2("dflash2", "DFlash2"),
    _dflash2(
        "dflash2-argmax",
        "DFlash2 (argmax)",
        sampling="argmax",
        patches=("dflash2_argmax",),
        argmax_log=(r"DFLASH selector decode folded .*sampling_enabled=False",),
    ),
    _domino("domino", "Domino", 2048, ("scores a pool of 2,048 candidates instead of the vocabulary",)),
    _domino("domino-full", "Domino (full vocabulary)", 0, ()),
    _dspark("dspark", "DSpark"),
    _dspark("dspark-argmax", "DSpark (argmax)", sampling="argmax"),
    _lilicorr("lilicorr", "LiLiCorr"),
    _lilicorr("lilicorr-argmax", "LiLiCorr (argmax)", sampling="argmax"),
    _lilicorr("lilicorr-conv", "LiLiCorr + conv", checkpoint="lilicorr-conv"),
    _lilicorr("lilicorr-exact", "LiLiCorr (exact path)", sampling="argmax", patches=("lilicorr_exact",)),
    Arm(
        name="eagle3",
        title="EAGLE-3",
        algorithm="EAGLE3",
        checkpoint="eagle3",
        flags=(
            "--speculative-num-steps",
            str(DRAFTED),
            "--speculative-eagle-topk",
            "1",
            "--speculative-num-draft-tokens",
            str(WINDOW),
            "--speculative-use-rejection-sampling",
        ),
        sampling="sampled",
        needs=("cuda",),
    ),
    Arm(
        name="ngram",
        title="n-gram",
        algorithm="NGRAM",
        flags=(*_DFLASH, "--speculative-ngram-max-bfs-breadth", "1"),
        approximations=("its table keeps every earlier request: rows depend on their order",),
        needs=("cuda",),
    ),
    Arm(
        name="standalone",
        title="Standalone drafter",
        algorithm="STANDALONE",
        checkpoint="standalone",
        needs=("cuda", "draft_model"),
    ),
    _dspark(
        "dspark-scheduled",
        "DSpark (confidence-scheduled)",
        env={"SGLANG_RAGGED_VERIFY_MODE": "compact"},
        argmax_log=(r"DSpark ragged-verify scheduler enabled \(mode=compact",),
        sampled_log=(r"DSpark ragged-verify scheduler enabled \(mode=compact",),
        needs=("cuda", "confidence_head", "sps_table"),
    ),
)
ARMS: Mapping[str, Arm] = {arm.name: arm for arm in _ROWS}
ARM_PATCHES = frozenset(name for arm in _ROWS for name in arm.patches)  # each belongs to the arms that name it


def get_arm(name: str, where: str = "arm") -> Arm:
    """The row called ``name``; `UserError` (naming ``where``) with the nearest name if there is none."""
    if name not in ARMS:
        raise UserError(f"{where}: unknown arm {name!r}", near_name(name, ARMS))
    return ARMS[name]
