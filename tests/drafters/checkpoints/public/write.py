"""Write the fixtures beside this file with the projects' own classes and writers, of the sizes of the tiny test target.

    pip install --no-deps --target DIR specforge==0.2.0 speculators==0.9.0 hs-connectors nvidia-modelopt==0.47.0
    pip install --target DIR omegaconf pulp
    PYTHONPATH=.:DIR python tests/drafters/checkpoints/public/write.py

Random weights (seeded) in bf16, norms too, so that none looks untrained; larger than at a start of training, so that
the slots of a block differ and some draft is right. Committed, so that the tests need none of the projects.
"""

import shutil
from pathlib import Path

import torch
from transformers import Qwen3Config

HERE = Path(__file__).parent
SIZES = {
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    "rope_theta": 1e6, "rms_norm_eps": 1e-6,
}  # fmt: skip
LAYER_IDS, MASK, BLOCK, TARGET_LAYERS = [0, 2], 3, 16, 4


def specforge(arm):
    from specforge.modeling.draft import dflash, domino, dspark

    nested = {"target_layer_ids": LAYER_IDS, "mask_token_id": MASK}
    if arm == "domino":
        nested |= {
            "projector_type": "domino",
            "emb_dim": 16,
            "gru_hidden_dim": 24,
            "shift_label": True,
            "pure_draft_prefix_len": 1,
        }
    if arm == "dspark":
        nested |= {
            "markov_rank": 16, "markov_head_type": "vanilla", "enable_confidence_head": True,
            "confidence_head_with_markov": True,
        }  # fmt: skip
    block = BLOCK - (arm == "dspark")  # its block_size counts drafted tokens
    config = Qwen3Config(**SIZES, block_size=block, num_target_layers=TARGET_LAYERS, dflash_config=nested)
    cls = {
        "dflash": dflash.DFlashDraftModel,
        "domino": domino.DominoDraftModel,
        "dspark": dspark.DSparkDraftModel,
    }[arm]
    return cls(config)


def speculators(arm):
    from speculators import SpeculatorsConfig, VerifierConfig
    from speculators.models import dflash, dflash2
    from speculators.proposals.greedy import GreedyTokenProposalConfig

    made = {"dflash": ("DFlash", dflash), "dflash2": ("DFlash2", dflash2)}[arm]
    name, module = made
    proposal = GreedyTokenProposalConfig(speculative_tokens=BLOCK - 1)
    config = getattr(module, f"{name}SpeculatorConfig")(
        transformer_layer_config=Qwen3Config(**SIZES),
        draft_vocab_size=SIZES["vocab_size"],
        block_size=BLOCK,
        aux_hidden_state_layer_ids=[i + 1 for i in LAYER_IDS],
        mask_token_id=MASK,
        speculators_config=SpeculatorsConfig(
            algorithm=arm,
            proposal_methods=[proposal],
            default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=None, architectures=["Qwen3ForCausalLM"]),
        ),
        **({"selector_rank": 16, "selector_top_k": 8} if arm == "dflash2" else {}),
    )
    return getattr(module, f"{name}DraftModel")(config)


def modelopt(arm):
    from modelopt.torch import speculative
    from transformers import Qwen3ForCausalLM

    drafter = {
        **SIZES, "num_hidden_layers": len(LAYER_IDS), "target_layer_ids": LAYER_IDS, "projector_type": arm,
        "markov_rank": 16, "markov_head_type": "vanilla",
    }  # fmt: skip
    if arm == "dflash":
        del drafter["projector_type"]
    target = Qwen3ForCausalLM(Qwen3Config(**{**SIZES, "num_hidden_layers": TARGET_LAYERS}))
    terms = {
        "dflash_block_size": BLOCK - (arm == "dspark"), "dflash_mask_token_id": MASK,
        "dflash_use_torch_compile": False, "dflash_architecture_config": drafter,
    }  # fmt: skip
    speculative.convert(target, [("dflash", terms)])
    return target


def main():
    families = (
        (specforge, ("dflash", "domino", "dspark")),
        (speculators, ("dflash", "dflash2")),
        (modelopt, ("dspark",)),
    )
    for project, arms in families:
        for arm in arms:
            torch.manual_seed(0)
            folder = HERE / f"{project.__name__}-{arm}"
            shutil.rmtree(folder, ignore_errors=True)
            model = project(arm).to(torch.bfloat16)
            for name, weight in getattr(model, "dflash_module", model).named_parameters():
                with torch.no_grad():
                    weight.copy_(weight + 0.1 * torch.randn_like(weight) if "norm" in name else 7 * weight)
            write(model, folder)
            print(folder.name, sum(p.stat().st_size for p in folder.iterdir()))


def write(model, folder):
    if hasattr(model, "get_exporter"):
        model.get_exporter().export(folder, torch.bfloat16)
        return
    model.save_pretrained(folder)
    for copied in folder.glob("*.py"):  # of the project's source
        copied.unlink()


if __name__ == "__main__":
    main()
