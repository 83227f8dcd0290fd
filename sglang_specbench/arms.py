"""The arms: what each one is to SGLang, what proves that it runs, and what is known to be approximate about it.

One row of data per arm; nothing here starts or reads anything. Flags, environment and proofs were read from SGLang
0.5.23 (``arg_groups/speculative_hook.py``, ``speculative/dflash_worker_v2.py``, ``speculative/lilicorr_utils.py``,
``speculative/dspark_components``).

A *proposal* says how a slot is committed: ``argmax`` (a point mass) or ``sampled`` (from q, which the verifier gets).
At temperature 0 every drafter commits the argmax; at temperature 1 the arm's row says which of the two it is.

A *variant*, ``lilicorr@k4``, is an arm with another checkpoint of its kind: an ablation measured beside the original.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

Proposal = Literal["none", "argmax", "sampled"]
DRAFTED, WINDOW = 15, 16  # slots drafted and positions verified in the paper (Table 4); a checkpoint says its own


@dataclass(frozen=True)
class Look:
    """How figures draw an arm: colour (Okabe and Ito's), matplotlib marker, dash pattern."""

    colour: str
    marker: str
    dashes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Switch:
    """Where SGLang's draft worker keeps what it does at temperature > 0, read when a server is attested.

    ``flag`` counts only when the attribute ``part`` is there and not None. Without a switch, the server's own
    ``speculative_use_rejection_sampling`` says it.
    """

    part: str
    flag: str
    sampled: bool = True  # the flag's value when the worker samples


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One competitor. ``flags``/``env`` hold for both proposals; ``*_env`` only for that proposal."""

    name: str
    title: str
    algorithm: str = ""  # --speculative-algorithm; "" is autoregressive decoding
    checkpoint: str = ""  # which trained drafter it loads: a key of the sweep's [target.*.drafters]; "" = none
    architectures: tuple[str, ...] = ()  # architectures[0] that the checkpoint's config.json may name
    marks: Mapping[str, str | bool] = field(default_factory=dict)  # config settings by which it differs from others of
    # its architecture: the value, or True for anything that is set; the row with the most marks that fit is taken
    sizes: tuple[str, ...] = ()  # config settings that must be positive whole numbers
    tensors: tuple[str, ...] = ()  # without these SGLang would serve something else, or random weights, in silence
    head: str = ""  # draft-sampler class folded into the draft CUDA graph; "" = no block head
    sampling: Proposal = "argmax"  # proposal at temperature > 0
    switch: Switch | None = None
    look: Look | None = None  # None: grey; rows that share a look are told apart by hatching
    flags: tuple[str, ...] = ()  # without the width, which is the checkpoint's (`width.flags`)
    env: Mapping[str, str] = field(default_factory=dict)
    argmax_env: Mapping[str, str] = field(default_factory=dict)
    sampled_env: Mapping[str, str] = field(default_factory=dict)
    argmax_log: tuple[str, ...] = ()  # regular expressions that a CUDA server's log must contain
    sampled_log: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()  # plugin patches that must be attested as applied
    approximations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # "cuda", "confidence_head", "sps_table", "draft_model"

    @property
    def kind(self) -> str:
        """What kind of checkpoint it loads: a variant's is that of its arm."""
        return base_of(self.checkpoint)

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


_GREEDY_DSPARK = {"SGLANG_DSPARK_USE_GREEDY_DRAFT": "1"}
_SAMPLED_LILICORR = {"SGLANG_ENABLE_LILICORR_SAMPLING": "1", "SGLANG_LILICORR_REQUIRE_SAMPLING": "1"}
_ANCHOR = "above concurrency 1 a block after a batch change may use a neighbour's anchor row (costs tau only)"
_FOLDED_LILICORR = r"LiLiCorr select folded into the draft cuda graph"


_DFLASH_ROW = Arm(
    name="dflash",
    title="DFlash",
    algorithm="DFLASH",
    checkpoint="dflash",
    architectures=("DFlashDraftModel",),
    head="_DflashDraftSampler",
    argmax_log=(r"DFLASH draft greedy head folded",),
    look=Look("#999999", "s"),
)
_DFLASH2 = Arm(
    name="dflash2",
    title="DFlash2",
    algorithm="DFLASH",
    checkpoint="dflash2",
    architectures=("DFlash2DraftModel",),
    marks={"conv_kernel_size": True},
    sizes=("selector_rank", "selector_top_k"),
    tensors=(
        "candidate_selector.predecessor_codebook",
        "candidate_selector.successor_codebook",
        "candidate_selector.hidden_projection.weight",
    ),
    head="_SelectorDraftSampler",
    sampling="sampled",
    switch=Switch("selector", "_selector_sampling_enabled"),
    argmax_log=(r"DFLASH selector decode folded .*sampling_enabled=True",),
    sampled_log=(r"DFLASH selector decode folded .*sampling_enabled=True",),
    look=Look("#E69F00", "o"),
)
_DOMINO = Arm(
    name="domino",
    title="Domino",
    algorithm="DFLASH",
    checkpoint="domino",
    architectures=("DFlashDraftModel",),
    marks={"projector_type": "domino"},
    sizes=("gru_hidden_dim", "emb_dim"),
    tensors=("prefix_gru.weight_ih_l0", "prefix_gru.weight_hh_l0", "embed_proj.0.weight", "embed_proj.2.weight"),
    head="_DominoDraftSampler",
    look=Look("#009E73", "^", (4, 1)),
)
_DSPARK_ROW = Arm(
    name="dspark",
    title="DSpark",
    algorithm="DSPARK",
    checkpoint="dspark",
    architectures=("Qwen3DSparkModel", "DSparkDraftModel"),
    sizes=("markov_rank",),
    tensors=("markov_head.markov_w1.weight", "markov_head.markov_w2.weight"),
    head="DsparkDraftSampler",
    sampling="sampled",
    switch=Switch("_greedy_draft", "_greedy_draft", sampled=False),
    argmax_env=_GREEDY_DSPARK,
    argmax_log=(r"DSpark draft proposal \(greedy draft\) folded",),
    sampled_log=(r"DSpark draft proposal \(sampling\) folded",),
    look=Look("#0072B2", "D", (3, 1, 1, 1)),
)
_LILICORR = Arm(
    name="lilicorr",
    title="LiLiCorr",
    algorithm="DFLASH",
    checkpoint="lilicorr",
    architectures=("LiLiCorrDraftModel",),
    sizes=("lilicorr_candidate_topk", "lilicorr_num_layers", "lilicorr_num_heads", "lilicorr_factor_dim"),
    tensors=("lilicorr.out_head.weight", "lilicorr.in_head.weight", "lilicorr.anchor_out_head.weight"),
    head="LiLiCorrDraftSampler",
    sampling="sampled",
    switch=Switch("lilicorr", "_lilicorr_sampling_enabled"),
    sampled_env=_SAMPLED_LILICORR,
    argmax_log=(r"LiLiCorr draft commit: greedy", _FOLDED_LILICORR),
    sampled_log=(r"LiLiCorr draft commit: sampled", _FOLDED_LILICORR),
    approximations=(_ANCHOR,),
    look=Look("#D55E00", "v"),
)


def _domino(arm: Arm, pool: int) -> Arm:
    """``arm`` with a pool of ``pool`` candidates shared by the block; 0: the whole vocabulary."""
    return replace(
        arm,
        flags=("--speculative-domino-candidate-pool-size", str(pool)),
        argmax_log=(r"DFLASH Domino rollout folded", rf"Domino rollout enabled .*candidate pool size={pool}\b"),
        approximations=(f"scores a pool of {pool:,} candidates instead of the vocabulary",) if pool else (),
    )


_ROWS = (
    Arm(name="ar", title="AR", look=Look("#000000", "x", (1, 1))),
    _DFLASH_ROW,
    _DFLASH2,
    replace(
        _DFLASH2,
        name="dflash2-argmax",
        title="DFlash2 (argmax)",
        sampling="argmax",
        patches=("dflash2_argmax",),
        argmax_log=(r"DFLASH selector decode folded .*sampling_enabled=False",),
    ),
    replace(_DFLASH2, name="dflash2-noconv", title="DFlash2 without conv", checkpoint="dflash2-noconv", marks={}),
    _domino(_DOMINO, 2048),
    _domino(replace(_DOMINO, name="domino-full", title="Domino (full vocabulary)"), 0),
    _DSPARK_ROW,
    replace(_DSPARK_ROW, name="dspark-argmax", title="DSpark (argmax)", sampling="argmax"),
    _LILICORR,
    replace(_LILICORR, name="lilicorr-argmax", title="LiLiCorr (argmax)", sampling="argmax"),
    replace(
        _LILICORR,
        name="lilicorr-conv",
        title="LiLiCorr + conv",
        checkpoint="lilicorr-conv",
        marks={"conv_kernel_size": True},
        look=Look("#CC79A7", "P", (5, 2)),
    ),
    replace(
        _LILICORR,
        name="lilicorr-exact",
        title="LiLiCorr (exact path)",
        sampling="argmax",
        patches=("lilicorr_exact",),
        look=Look("#56B4E9", "*", (1, 1)),
    ),
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
        flags=("--speculative-num-draft-tokens", str(WINDOW), "--speculative-ngram-max-bfs-breadth", "1"),
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
    replace(
        _DSPARK_ROW,
        name="dspark-scheduled",
        title="DSpark (confidence-scheduled)",
        env={"SGLANG_RAGGED_VERIFY_MODE": "compact"},
        argmax_log=(r"DSpark ragged-verify scheduler enabled \(mode=compact",),
        sampled_log=(r"DSpark ragged-verify scheduler enabled \(mode=compact",),
        needs=("cuda", "confidence_head", "sps_table"),
    ),
)


class Arms(Mapping[str, Arm]):
    """The rows by name, in order; a variant of a row is found too, and is not iterated over."""

    def __init__(self, rows: tuple[Arm, ...]) -> None:
        self._rows = {arm.name: arm for arm in rows}

    def __getitem__(self, name: str) -> Arm:
        row, word = self._rows[base_of(name)], word_of(name)
        if name == row.name:
            return row
        if not (row.checkpoint and _WORD.fullmatch(word)):
            raise KeyError(name)
        return replace(row, name=name, title=f"{row.title} [{word}]", checkpoint=f"{row.checkpoint}@{word}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def base_of(name: str) -> str:
    """``lilicorr`` of ``lilicorr@k4``; the name itself if it is no variant's."""
    return name.partition("@")[0]


def word_of(name: str) -> str:
    """``k4`` of ``lilicorr@k4``; "" if it is no variant's name."""
    return name.partition("@")[2]


ARMS = Arms(_ROWS)
ARM_PATCHES = frozenset(name for arm in _ROWS for name in arm.patches)  # each belongs to the arms that name it


def table_order(name: str) -> tuple[int, str]:
    """Sort key: the order of the rows; a variant stands behind its arm."""
    return list(ARMS).index(base_of(name)), name


def get_arm(name: str, where: str = "arm") -> Arm:
    """The row called ``name``; `UserError` (naming ``where``) with the nearest name if there is none."""
    if name not in ARMS and base_of(name) in ARMS:
        raise UserError(
            f"{where}: {name!r} is no variant of an arm", "write ARM@WORD: an arm with a drafter, and a-z, 0-9, . _ -"
        )
    if name not in ARMS:
        raise UserError(f"{where}: unknown arm {name!r}", near_name(name, ARMS))
    return ARMS[name]
