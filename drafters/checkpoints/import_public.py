"""Public drafter checkpoints brought into the form that SGLang 0.5.23 loads: renames only, no number is changed.

Known forms: z-lab's DFlash, DeepSpec's DSpark, and the exports of SpecForge and NVIDIA ModelOpt. What each calls
differently was read in their exporters; `check` then says what is still missing.
"""

import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from drafters.checkpoints.check import read_config
from sglang_specbench.arms import ARMS
from sglang_specbench.checkpoint_kind import setting
from sglang_specbench.errors import UserError

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
_BORROWED = re.compile(r"(^|\.)(embed_tokens|lm_head|rotary_emb)\.")  # the target's, or constants


def import_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(config, bf16 tensors) of the public checkpoint in ``folder`` under SGLang's names.

    Raises `UserError` when it has no config.json or no safetensors, or when two tensors end up with one name.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise UserError(f"{folder}: no *.safetensors", "name the folder of a drafter checkpoint")
    tensors: dict[str, Tensor] = {}
    for path in paths:
        for name, value in load_file(path).items():
            if _BORROWED.search(name):
                continue
            if rename(name) in tensors:
                raise UserError(f"{path}: two tensors become {rename(name)!r}", "the checkpoint mixes two forms")
            tensors[rename(name)] = value.to(torch.bfloat16).contiguous()
    return _config(read_config(folder), tensors), tensors


def rename(name: str) -> str:
    """SGLang's name for a tensor that a public trainer calls ``name``."""
    for pattern, to in _RENAMES:
        name = re.sub(pattern, to, name)
    return name


def _config(config: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    config = {**config, "dtype": "bfloat16"}
    config.pop("torch_dtype", None)
    if "prefix_gru.weight_ih_l0" in tensors:  # SpecForge names DominoDraftModel, which SGLang does not register
        config["architectures"] = ["DFlashDraftModel"]
        config["dflash_config"] = {**config.get("dflash_config", {}), "projector_type": "domino"}
    elif "markov_head.markov_w1.weight" in tensors:
        config = _dspark_config(config, tensors)
    if "rope_theta" not in config and config.get("rope_parameters"):
        config["rope_theta"] = config["rope_parameters"]["rope_theta"]
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
