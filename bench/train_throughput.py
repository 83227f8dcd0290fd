"""Training throughput on a CPU: our DFlash update beside SpecForge's, same shapes, samples, target and threads.

    pip install --no-deps --target DIR specforge
    PYTHONPATH=DIR python bench/train_throughput.py [--threads 1] [--repeats 5] [--json FILE]

Both train the same drafter (the mini recipe) from the same frozen mini target on the same batch with the same
optimiser; what differs is the drafter's own forward, loss and backward. SpecForge runs as it is meant to on a CPU
(attention "sdpa"; its flex_attention has no backward there), with its default chunk of 128 blocks and with chunking
off; the faster of the two counts. They take turns within a repeat. Tokens are those of the sequences, seconds those
of the process's CPU time; the median over repeats is printed. The target's pass is the same code for both: its share
of our step bounds what a faster drafter could gain. `joint` is what a family of arms gains from sharing that pass:
six arms in one step of ours, against six steps of theirs.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.table import Table

import drafters
from drafters.model.blocks import TrainingBatch
from drafters.model.config import DrafterConfig
from drafters.model.drafter import build
from drafters.model.registry import load_recipe
from drafters.reference.target import Target
from drafters.training.contract import Contract
from drafters.training.trainee import Trainee
from sglang_specbench.console import Console

MINI = Path(drafters.__file__).parent / "mini"
MASK = 3
SEQUENCES, LENGTH = 4, 256
ARMS = 6  # of the mini family


def batch_of(target: Target, layer_ids: tuple[int, ...], anchors: int) -> TrainingBatch:
    """Random tokens under a full loss mask: no speed depends on what they say."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(6, len(target.embedding_VH), (SEQUENCES, LENGTH), generator=generator)
    features, final = target.states(tokens, layer_ids)
    drawn = [torch.randperm(LENGTH - 16, generator=generator)[:anchors].sort().values for _ in range(SEQUENCES)]
    return TrainingBatch(
        tokens_BS=tokens,
        loss_BS=torch.ones_like(tokens, dtype=torch.bool),
        anchor_BN=torch.stack(drawn),
        keep_BN=torch.ones(SEQUENCES, anchors, dtype=torch.bool),
        features_BSF=features,
        final_BSH=final,
        embedding_VH=target.embedding_VH,
        head_VH=target.head_VH,
    )


def ours(target: Target, config: DrafterConfig, anchors: int, arms: int = 1) -> Callable[[], None]:
    recipe, contract = load_recipe("dflash", MINI / "recipes" / "dflash.toml"), Contract.load(MINI / "contract.toml")
    trainees = [Trainee("dflash", build(config), recipe.loss, contract) for _ in range(arms)]

    def step() -> None:
        batch = batch_of(target, config.target_layer_ids, anchors)
        for trainee in trainees:
            trainee.update([batch], 1.0)

    return step


def specforge(target: Target, config: DrafterConfig, anchors: int, chunk: int) -> Callable[[], None]:
    from specforge.algorithms.common.dflash_family_model import OnlineDFlashModel
    from specforge.modeling.draft.dflash import DFlashDraftModel
    from transformers import Qwen3Config

    table = {key: value for key, value in config.to_json().items() if key not in ("architectures", "dtype")}
    drafter = DFlashDraftModel(Qwen3Config(**table, attn_implementation="sdpa")).float()
    model = OnlineDFlashModel(
        drafter,
        target.model.get_output_embeddings(),
        target.model.get_input_embeddings(),
        MASK,
        block_size=config.block_size,
        attention_backend="sdpa",
        num_anchors=anchors,
        loss_decay_gamma=7.0,
        objective_chunk_blocks=chunk,
    )
    weights = list(drafter.parameters())
    optimiser = torch.optim.AdamW(weights, lr=2e-3, weight_decay=0.0, fused=True)

    def step() -> None:
        batch = batch_of(target, config.target_layer_ids, anchors)
        model(batch.tokens_BS, batch.features_BSF, batch.loss_BS.float())[0].backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def measure(steps: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median tokens/s of each, taken in turns after one warm-up each."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(repeats + 1):
        for name, step in steps.items():
            started = time.process_time()  # CPU time: other work on the machine does not count
            step()
            if repeat:
                seconds[name].append(time.process_time() - started)
    return {name: SEQUENCES * LENGTH / statistics.median(values) for name, values in seconds.items()}


def main(threads: int, repeats: int, output: Path | None) -> None:
    try:
        import specforge as peer  # noqa: F401
    except ImportError as error:
        print(f"skipped: SpecForge is not installed here ({error}); see the top of this file")
        return
    torch.set_num_threads(threads)
    target = Target.load(MINI / "target")
    recipe = load_recipe("dflash", MINI / "recipes" / "dflash.toml")
    config = DrafterConfig.from_target(target.config, "dflash", mask_token_id=MASK, **recipe.model)
    names = ("anchors", "ours, tokens/s", "joint", "target alone", "SpecForge", "SpecForge, no chunks")
    table = Table(*names, "target's share", "ours / theirs", "joint: 6 of ours / 6 runs of theirs")
    rows = []
    for anchors in (8, 64):
        steps = {"ours": ours(target, config, anchors), "joint": ours(target, config, anchors, ARMS)}
        steps["target"] = partial(batch_of, target, config.target_layer_ids, anchors)
        steps |= {f"specforge-{chunk}": specforge(target, config, anchors, chunk) for chunk in (128, 0)}
        pace = measure(steps, repeats)
        theirs, share = max(pace["specforge-128"], pace["specforge-0"]), pace["ours"] / pace["target"]
        ratio, joint = pace["ours"] / theirs, ARMS * pace["joint"] / theirs
        rows.append({"anchors": anchors, "threads": threads, "ratio": ratio, "joint_ratio": joint, **pace})
        paces = (f"{value:.0f}" for value in pace.values())
        table.add_row(str(anchors), *paces, f"{share:.0%}", f"{ratio:.2f}", f"{joint:.2f}")
    Console().print(table)
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, dest="output")
    main(**vars(parser.parse_args()))
