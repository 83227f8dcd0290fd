"""The shape of one drafter, and the config.json in which SGLang 0.5.23 reads it.

Knows sizes and where SGLang looks for them (``speculative/dflash_utils.py:parse_dflash_draft_config``,
``dspark_components/dspark_config.py``). What an arm adds stands in its ``head.Settings``; tensors are not here.

``block_size`` has SGLang's meaning: it counts the anchor, except for DSpark, where the anchor's row predicts too and
it is the number of drafted tokens (gamma).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drafters.model.finding import is_count
from drafters.model.registry import package
from sglang_specbench.arms import DRAFTED
from sglang_specbench.checkpoint import MOST_LAYERS
from sglang_specbench.checkpoint_kind import kind, rope_theta, setting
from sglang_specbench.config import from_dict, near_name
from sglang_specbench.errors import UserError

_COPIED = (  # from the target to the drafter, as the released Qwen3 drafters do
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "rms_norm_eps",
    "vocab_size",
    "max_position_embeddings",
)


@dataclass(frozen=True, kw_only=True)
class DrafterConfig:
    """One drafter. ``head`` is its arm's ``Settings``; ``conv_kernel_size`` 0 means no convolution."""

    arm: str  # whose drafter it is
    hidden_size: int  # the target's
    num_hidden_layers: int  # of the drafter; unless stated, 5
    num_attention_heads: int  # the target's, unless stated
    num_key_value_heads: int  # the target's, unless stated
    head_dim: int  # the target's, unless stated
    intermediate_size: int  # the target's, unless stated
    vocab_size: int  # the target's
    max_position_embeddings: int  # the target's
    rope_theta: float  # the target's, unless stated
    block_size: int  # rows of a block, the anchor's included, but for DSpark; unless stated, 16 (DSpark: 15)
    mask_token_id: int  # token id that stands for a drafted slot
    target_layer_ids: tuple[int, ...]  # target layers whose hidden states are seen; unless stated, evenly spaced
    num_target_layers: int  # the target's
    head: Any  # the arm's own settings
    rms_norm_eps: float = 1e-6  # the target's, unless stated
    conv_kernel_size: int = 0  # rows that the convolution of -conv arms and DFlash2 sees; 0: none
    conv_group_size: int = 0  # channels of one group of it

    def __post_init__(self) -> None:
        if bool(self.conv_kernel_size) != bool(self.conv_group_size):
            raise ValueError("conv_kernel_size and conv_group_size go together: write both or none")
        if self.conv_group_size and self.hidden_size % self.conv_group_size:
            raise ValueError(
                f"conv_group_size {self.conv_group_size} does not divide hidden_size {self.hidden_size}: choose another"
            )
        if not 0 <= self.mask_token_id < self.vocab_size:
            raise ValueError(
                f"mask_token_id {self.mask_token_id} is no row of the embedding: name one below {self.vocab_size}"
            )
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                     "intermediate_size", "vocab_size", "block_size"):  # fmt: skip
            if not 0 < getattr(self, name) < 1 << 31:
                raise ValueError(f"{name} {getattr(self, name)} is no size: write 1 or more")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError("num_key_value_heads does not divide num_attention_heads: choose a divisor")
        if not self.target_layer_ids or min(self.target_layer_ids) < 0:
            raise ValueError("target_layer_ids: no layers, or negative ones: name layers of the target from 0 on")
        if max(self.target_layer_ids) > self.num_target_layers - 2:
            raise ValueError(
                f"target_layer_ids: SGLang captures no layer after {self.num_target_layers - 2}: name layers up to it"
            )

    @property
    def rows(self) -> int:
        """Query rows of one block: the anchor's and one for each mask token."""
        return self.block_size

    @property
    def drafted(self) -> int:
        """Tokens that one block drafts."""
        return self.block_size - int(self.head.counts_anchor)

    @property
    def first_row(self) -> int:
        """The row of a block that predicts the first drafted token."""
        return 0 if self.head.anchor_predicts else 1

    @classmethod
    def from_target(
        cls, target: Mapping[str, Any], arm: str, *, mask_token_id: int, num_hidden_layers: int = 5, **model: Any
    ) -> "DrafterConfig":
        """A drafter for the ``target`` of this config.json, heads and widths copied from it.

        ``model`` overrides any field or sets one of the arm's own settings (a recipe's ``[model]`` table); `UserError`
        for a key that is neither.
        """
        settings = package(arm).Settings
        fields = {f.name for f in dataclasses.fields(cls)} - {"arm", "head"}
        own = {f.name for f in dataclasses.fields(settings)}
        for key in model:
            if key not in fields | own:
                raise UserError(f"{arm}: unknown model setting {key!r}", near_name(key, fields | own))
        layers: Any = target.get("num_hidden_layers")
        given: dict[str, Any] = {"num_hidden_layers": num_hidden_layers, "the target's num_hidden_layers": layers}
        for name, count in given.items():
            if not is_count(count) or count > MOST_LAYERS:
                raise UserError(f"{arm}: {name}: {str(count)[:80]} is no number of layers", f"1 to {MOST_LAYERS:,}")
        values = {
            **{name: target[name] for name in _COPIED if name in target},
            "rope_theta": _rope_theta(target),
            "block_size": DRAFTED + settings.counts_anchor,
            "target_layer_ids": default_layer_ids(num_hidden_layers, layers),
            "num_target_layers": layers,
            "mask_token_id": mask_token_id,
            "num_hidden_layers": num_hidden_layers,
            **{key: value for key, value in model.items() if key in fields},
            "arm": arm,
            "head": {key: value for key, value in model.items() if key in own},
        }
        return _build(values, arm)

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "DrafterConfig":
        """Read a config.json that `to_json` (or SGLang) would; `UserError` naming a missing or wrong key."""
        arm = kind(config)
        if not arm:
            raise UserError(f"config.json: no block drafter {config.get('architectures')}", "see specbench check")
        fields = [f.name for f in dataclasses.fields(cls) if f.name not in ("arm", "head", "rope_theta")]
        found = {name: setting(config, name) for name in fields}
        values = {name: value for name, value in found.items() if value is not None}
        try:
            head = package(arm).Settings.from_json(config)
        except KeyError as error:
            raise UserError(f"config.json: no {error} for {arm}", "see specbench check") from None
        return _build({**values, "rope_theta": _rope_theta(config), "arm": arm, "head": head}, "config.json")

    def to_json(self) -> dict[str, Any]:
        """The config.json that SGLang 0.5.23 reads; bf16, like every exported checkpoint."""
        top, nested = self.head.to_json()
        conv = {"conv_kernel_size": self.conv_kernel_size, "conv_group_size": self.conv_group_size}
        shared = {"mask_token_id": self.mask_token_id, "target_layer_ids": list(self.target_layer_ids)}
        return {
            "architectures": [self.head.architecture],
            "model_type": "qwen3",
            "dtype": "bfloat16",
            **{name: getattr(self, name) for name in _COPIED},
            "num_hidden_layers": self.num_hidden_layers,
            "hidden_act": "silu",
            "attention_bias": False,
            "tie_word_embeddings": False,
            "rope_theta": self.rope_theta,  # absent, Qwen3Config would silently use 10000
            "is_causal": False,  # absent, SGLang makes sliding layers causal within the block
            "layer_types": ["full_attention"] * self.num_hidden_layers,
            "block_size": self.block_size,
            "num_target_layers": self.num_target_layers,
            **top,
            "dflash_config": {**shared, **(conv if self.conv_kernel_size else {}), **nested},
        }


def default_layer_ids(draft_layers: int, target_layers: int) -> tuple[int, ...]:
    """Target layers to capture: evenly spaced from 1 to L-3 (SGLang 0.5.23 ``build_target_layer_ids``)."""
    if draft_layers == 1:
        return (target_layers // 2,)
    step = (target_layers - 4) / (draft_layers - 1)
    return tuple(round(1 + index * step) for index in range(draft_layers))


def _rope_theta(config: Mapping[str, Any]) -> float:
    value = rope_theta(config)
    if value is None:
        raise UserError("config.json: no rope_theta", "write the value that the model was trained with")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"config.json: rope_theta: expected a number, got {str(value)[:80]}", "write it as trained")
    return float(value)


def _build(values: dict[str, Any], where: str) -> DrafterConfig:
    if isinstance(values["head"], dict):
        values["head"] = from_dict(package(values["arm"]).Settings, values["head"], where)
    return from_dict(DrafterConfig, values, where)
