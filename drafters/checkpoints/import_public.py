"""Public drafter checkpoints brought into the form that SGLang 0.5.23 loads: renames only, no number is changed.

Known forms: z-lab's DFlash, DeepSpec's DSpark, the exports of SpecForge and NVIDIA ModelOpt, and speculators
(`speculators_config`). What each calls differently was read in their exporters; `check` then says what is still
missing. Every tensor is taken, or dropped for a reason that is told, or the whole checkpoint is refused.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from drafters.checkpoints.check import read_config
from drafters.checkpoints.speculators_config import from_speculators, is_speculators
from sglang_specbench.arms import ARMS
from sglang_specbench.checkpoint import REMEDY, TENSORS_BYTES
from sglang_specbench.checkpoint_kind import rope_theta, setting
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import open_file, reading

_RENAMES = (
    (r"^(module\.|_orig_mod\.|draft_model\.|model\.)+", ""),  # wrappers of DDP, torch.compile and trainers
    (r"^encoder\.fc\.", "fc."),
    (r"^encoder\.output_norm_enc\.", "hidden_norm."),
    (r"^(markov_w[12]|gate_proj|joint_proj)\.", r"markov_head.\1."),  # ModelOpt keeps the Markov head flat
    (r"^lilicorr\.feature_mlp\.0\.", "lilicorr.feature_norm."),  # ModelOpt: nn.Sequential's numbers
    (r"^lilicorr\.feature_mlp\.1\.", "lilicorr.feature_mlp.up_proj."),
    (r"^lilicorr\.feature_mlp\.3\.", "lilicorr.feature_mlp.down_proj."),
    (r"^lilicorr\.layers\.(\d+)\.mlp\.0\.", r"lilicorr.layers.\1.mlp.up_proj."),
    (r"^lilicorr\.layers\.(\d+)\.mlp\.2\.", r"lilicorr.layers.\1.mlp.down_proj."),
)
TYPES = "each field must be of the type that transformers writes"
_BORROWED = ("embed_tokens.weight", "lm_head.weight")
_CONSTANT = re.compile(r"(^|\.)(rotary_emb|inv_freq)\b")
_TARGETS = re.compile(r"^verifier_(lm_head|norm)\.")  # speculators: frozen copies, used in training alone
_FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Imported:
    """``dropped``: how many tensors for each reason; the others are in ``tensors``."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    dropped: dict[str, int]


def import_checkpoint(folder: Path, target: Path | None = None) -> Imported:
    """The public checkpoint in ``folder`` under SGLang's names, in bf16.

    Raises `UserError` when it has no config.json or no safetensors, when two tensors end up with one name, when its
    weights are quantised, and when it brings an embedding or head of its own: SGLang drafts with the target's, so they
    must be the same numbers as those of the ``target`` folder.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise UserError(f"{folder}: no *.safetensors", "name the folder of a drafter checkpoint")
    config = read_config(folder)
    if any(key in config for key in ("quantization_config", "compression_config")):
        raise UserError(f"{folder}: config.json says that it is quantised", "import the unquantised checkpoint")
    tensors: dict[str, Tensor] = {}
    dropped: Counter[str] = Counter()
    for path in paths:
        for name, value in _load(path).items():
            new = rename(name)
            if reason := _dropped(new, value, f"{path}: {name}", target):
                dropped[reason] += 1
                continue
            if value.dtype not in _FLOATS or new.endswith(("_scale", "_scale_inv", "_zero_point", "_packed")):
                raise UserError(f"{path}: {name} is {value.dtype}, not a plain number", "import unquantised weights")
            if new in tensors:
                raise UserError(f"{path}: two tensors become {new!r}", "the checkpoint mixes two forms")
            tensors[new] = value.to(torch.bfloat16).contiguous()
    with reading(folder / "config.json", TYPES, "a field is missing or of another type"):
        _refuse_unserved(config, str(folder))
        if is_speculators(config):
            config = from_speculators(config, str(folder), _layers(target))
        return Imported(_config(config, tensors), tensors, dict(dropped))


def _load(path: Path) -> dict[str, Tensor]:
    with reading(path, REMEDY, "not a safetensors file"):
        open_file(path, TENSORS_BYTES, REMEDY).close()
        return load_file(path)


def _refuse_unserved(config: dict[str, Any], where: str) -> None:
    """Options of ModelOpt's exporter that SGLang 0.5.23 does not read: it would serve another function."""
    nested = config.get("dflash_config") or {}
    for key, words in (("use_swa", "a sliding window"), ("attention_sink_bias", "attention sinks")):
        if nested.get(key):
            raise UserError(f"{where}: dflash_config.{key}: SGLang 0.5.23 does not serve {words}", "train without")


def _layers(target: Path | None) -> dict[str, Any]:
    """``num_target_layers`` of a config that leaves it out, where the target is at hand."""
    layers = read_config(target).get("num_hidden_layers") if target else None
    return {} if layers is None else {"num_target_layers": layers}


def rename(name: str) -> str:
    """SGLang's name for a tensor that a public trainer calls ``name``."""
    for pattern, to in _RENAMES:
        name = re.sub(pattern, to, name)
    return name


def _dropped(name: str, value: Tensor, where: str, target: Path | None) -> str:
    """Why the tensor is left out; "" when it is not."""
    if _CONSTANT.search(name):
        return "constants of the rotary embedding"
    if _TARGETS.match(name):
        return "the target's, frozen, used in training alone"
    if name in ("t2d", "d2t"):
        raise UserError(
            f"{where}: drafts over a vocabulary of its own, which SGLang 0.5.23 has only for EAGLE",
            "train the drafter on the target's whole vocabulary",
        )
    if name not in _BORROWED:
        return ""
    if target is None:
        raise UserError(
            f"{where}: SGLang drafts with the target's instead", "add --target TARGET, so that the two can be compared"
        )
    theirs = _target_tensor(target, name)
    if theirs.shape != value.shape or not torch.equal(theirs.to(torch.bfloat16), value.to(torch.bfloat16)):
        raise UserError(
            f"{where} is not the target's, with which SGLang would draft",
            "such a drafter cannot be served; import one that was trained with the target's own",
        )
    return "the target's own, which SGLang lends"


def _target_tensor(target: Path, name: str) -> Tensor:
    """The target's embedding or head (its embedding, when the two are tied)."""
    found = {}
    for path in sorted(target.glob("*.safetensors")):
        with reading(path, REMEDY, "not a safetensors file"), safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 (not a dict)
                if key.endswith(("embed_tokens.weight", "lm_head.weight")):
                    found[key.removeprefix("model.")] = file.get_tensor(key)
    tied = found.get("embed_tokens.weight")
    tensor = found.get(name, tied)
    if tensor is None:
        raise UserError(f"--target {target}: no {name} there", "name the target's folder")
    return tensor


def _config(config: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    config = {**config, "dtype": "bfloat16"}
    config.pop("torch_dtype", None)
    if "prefix_gru.weight_ih_l0" in tensors:  # SpecForge names DominoDraftModel, which SGLang does not register
        config["architectures"] = ["DFlashDraftModel"]
        config["dflash_config"] = {**config.get("dflash_config", {}), "projector_type": "domino"}
    elif "markov_head.markov_w1.weight" in tensors:
        config = _dspark_config(config, tensors)
    nested = config.get("dflash_config") or {}
    if "causal" in nested:  # ModelOpt's word for all layers
        config["is_causal"] = bool(nested["causal"])
    if config.get("is_causal") is None and "sliding_attention" not in (config.get("layer_types") or ()):
        config["is_causal"] = False  # what SGLang assumes of full attention: said, not changed
    if (theta := rope_theta(config)) is not None:
        config["rope_theta"] = theta
    return config


def _dspark_config(config: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The head's keys at the top level, where SGLang looks, with the values that the tensors themselves imply."""
    confidence = tensors.get("confidence_head.proj.weight")
    implied = {
        "markov_rank": tensors["markov_head.markov_w1.weight"].shape[1],
        "markov_head_type": _markov_type(tensors),
        "enable_confidence_head": confidence is not None,
        "confidence_head_with_markov": confidence is not None and confidence.shape[1] > config["hidden_size"],
        "sample_from_anchor": setting(config, "sample_from_anchor") is not False,
    }
    architecture = (config.get("architectures") or [""])[0]
    known = ARMS["dspark"].architectures
    return {**config, **implied, "architectures": [architecture if architecture in known else known[0]]}


def _markov_type(tensors: dict[str, Tensor]) -> str:
    if "markov_head.gate_proj.weight" in tensors:
        return "gated"
    return "rnn" if "markov_head.joint_proj.weight" in tensors else "vanilla"
