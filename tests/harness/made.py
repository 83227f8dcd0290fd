"""Small cells, rows, checkpoints and sweeps for the tests of planning and storing."""

import json
import struct
from pathlib import Path

from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.schema.request import Row
from sglang_specbench.arms import ARMS
from sglang_specbench.checkpoint_kind import kind
from sglang_specbench.checkpoint_kind import row as arm_row

DFLASH = {
    "architectures": ["DFlashDraftModel"],
    "hidden_size": 64,
    "vocab_size": 512,
    "rope_theta": 1e6,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 2]},
}
TARGET = {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "vocab_size": 512, "rope_theta": 1e6}
SELECTOR = {"selector_rank": 8, "selector_top_k": 8, "conv_kernel_size": 2}


def cell(**changes):
    fields = {
        "target": "mini",
        "target_digest": "t" * 64,
        "arm": "dflash",
        "proposal": "argmax",
        "draft_digest": "d" * 64,
        "prompt_set": "gsm8k",
        "prompt_version": "v1:abc",
        "temperature": 0.0,
        "seed": 42,
        "concurrency": 1,
        "prompts": 1,
        "max_new_tokens": 64,
    }
    return Cell(**{**fields, **changes})


def row(index=0, **changes):
    """A request of three blocks that commit 0, 2 and 3 drafts: 1 + 3 + 5 tokens, one cut off at the limit."""
    fields = {
        "index": index,
        "prompt_id": f"p{index}",
        "prompt_hash": "a" * 64,
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "verify_ct": 3,
        "correct_drafts": 5,
        "histogram": (1, 0, 1, 1),
        "finish_reason": "length",
        "sent_s": 0.5 * index,
        "first_token_s": 0.5 * index + 0.1,
        "done_s": 0.5 * index + 0.4,
        "output_hash": "b" * 64,
    }
    return Row(**{**fields, **changes})


def header(of=None, **changes):
    """Of one `row`, which takes 0.4 s."""
    fields = {"outcome": "ok", "wall_s": 0.4, "environment": {"driver": "580", "sglang": "0.5.23"}}
    return Header(cell=of or cell(), **{**fields, **changes})


def model(folder: Path, config, tensors=None):
    """A model folder whose config and safetensors header are real and whose weights are a few zero bytes.

    ``tensors``: names; those that the config's arm demands, and a norm, by default.
    """
    if tensors is None:
        tensors = ("norm.weight", *(arm_row(kind(config)).tensors if kind(config) else ()))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    entries = {
        name: {"dtype": "BF16", "shape": [1], "data_offsets": [2 * i, 2 * i + 2]} for i, name in enumerate(tensors)
    }
    text = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(2 * len(entries)))
    return folder


def drafter(arm, **changes):
    """A config that `checkpoint.check` accepts for the checkpoint name ``arm``."""
    nested = dict(DFLASH["dflash_config"])
    config = {**DFLASH, "dflash_config": nested}
    if arm == "dflash2":
        config["architectures"] = ["DFlash2DraftModel"]
        nested |= SELECTOR
    elif arm == "dflash2-noconv":
        config["architectures"] = ["DFlash2DraftModel"]
        nested |= {key: SELECTOR[key] for key in ("selector_rank", "selector_top_k")}
    elif arm == "domino":
        nested |= {"projector_type": "domino", "gru_hidden_dim": 8, "emb_dim": 8}
    elif arm == "dspark":
        config |= {"architectures": ["Qwen3DSparkModel"], "block_size": 15, "markov_rank": 8}
    elif arm.startswith("lilicorr"):
        config["architectures"] = ["LiLiCorrDraftModel"]
        nested |= dict.fromkeys(ARMS["lilicorr"].sizes, 8)
        nested |= {"conv_kernel_size": 2} if arm == "lilicorr-conv" else {}
    return {**config, **changes}


def sweep_text(folder: Path, arms=("ar", "dflash"), drafters=("dflash",), **panel):
    """A sweep over ``folder``/target and ``folder``/NAME on the shipped set mt-bench."""
    lists = {"temperatures": [0], "seeds": [42], "concurrency": [1], **panel}
    lines = ['name = "t"', "[target.toy]", f'path = "{folder}/target"', "[target.toy.drafters]"]
    lines += [f'{name} = "{folder}/{name}"' for name in drafters]
    lines += ["[[panel]]", f"arms = {json.dumps(list(arms))}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in lists.items()]
    return "\n".join([*lines, "[panel.sets.mt-bench]", "prompts = 4", ""])


def toy(folder: Path, drafters=("dflash",)):
    """Target and drafters under ``folder``, as `sweep_text` names them."""
    model(folder / "target", TARGET)
    for name in drafters:
        model(folder / name, drafter(name))
    return folder
