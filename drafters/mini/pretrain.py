"""Pretraining of the mini target: one loop, fp32, one process per core.

Knows: the target's geometry, the mixture of domains in a step, the schedule, and how a killed run resumes.
Run it with `torchrun --nproc-per-node 2 -m drafters.mini.pretrain DIR` (one thread a process: on a shared
machine one all-reduce a step costs less than OpenMP's barriers), after `build` made DIR/corpus.
Not here: corpus, tokenizer, the rounding of the final weights (build).

Shapes: B sequences of a micro-batch, T their longest length, V vocabulary.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from drafters.mini.tokenizer import END_ID, END_OF_TEXT_ID, VOCAB_SIZE

SEED = 42
STEPS = 1000
TOKENS_A_STEP = {"arithmetic": 1024, "code": 1792, "prose": 1792}  # per process
LEARNING_RATE = 3e-3
WARM_UP = 0.04
LOG_EVERY = 20
SAVE_EVERY = 150
IGNORED = -100  # label of padding, skipped by cross_entropy


def target_config() -> Qwen3Config:
    """2.75 M parameters with tied embeddings; every rotary and norm constant written out for SGLang."""
    return Qwen3Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=192,
        num_hidden_layers=6,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=512,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        eos_token_id=END_ID,
        pad_token_id=END_OF_TEXT_ID,
        bos_token_id=None,
    )


def batches(sequences: list[list[int]], tokens: int, seed: str) -> Iterator[Tensor]:
    """Endless label matrices [B, T] of similar lengths, padded with IGNORED, at most `tokens` entries each.

    An epoch's last, unfilled group (its few longest sequences) is left out.
    """
    for epoch in itertools.count():
        rng = Random(f"{seed}/{epoch}")
        ordered = sorted(sequences, key=lambda ids: (len(ids), rng.random()))
        groups: list[list[Tensor]] = []
        group: list[Tensor] = []
        for ids in ordered:
            if (len(group) + 1) * len(ids) > tokens and group:
                groups.append(group)
                group = []
            group.append(torch.tensor(ids))
        rng.shuffle(groups)
        for group in groups:
            yield torch.nn.utils.rnn.pad_sequence(group, batch_first=True, padding_value=IGNORED)


def loss_of(model: Qwen3ForCausalLM, labels_BT: Tensor) -> Tensor:
    """Mean cross-entropy in nats per token over every token but the first of each sequence."""
    ids_BT = labels_BT.masked_fill(labels_BT == IGNORED, END_OF_TEXT_ID)
    # padding stands on the right and attention is causal: no mask is needed
    logits_BTV = model(input_ids=ids_BT, use_cache=False).logits
    return F.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), labels_BT[:, 1:].flatten(), ignore_index=IGNORED)


def average_gradients(model: torch.nn.Module) -> None:
    """Average every gradient over the processes in one all-reduce."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients]) / dist.get_world_size()
    dist.all_reduce(flat)
    for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def rate(step: int) -> float:
    """Linear warm-up, then linear decay to zero, as a factor of the learning rate."""
    warm = WARM_UP * STEPS
    return min((step + 1) / warm, (STEPS - step) / (STEPS - warm))


def optimizers(model: torch.nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices (in 100 steps 1 nat below AdamW on code), AdamW for embedding and norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=LEARNING_RATE, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0),
    ]


class Pretraining:
    """Model, optimizers and step counter of one process."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(SEED)
        self.folder = folder
        self.model = Qwen3ForCausalLM(target_config())
        self.optimizers = optimizers(self.model)
        self.schedules = [torch.optim.lr_scheduler.LambdaLR(o, rate) for o in self.optimizers]
        self.parts = {"model": self.model}
        self.parts |= {f"optimizer{i}": part for i, part in enumerate(self.optimizers)}
        self.parts |= {f"schedule{i}": part for i, part in enumerate(self.schedules)}
        self.step = 0

    def resume(self) -> None:
        """Continue from the last checkpoint, if there is one."""
        if (self.folder / "checkpoint.pt").exists():
            state = torch.load(self.folder / "checkpoint.pt")
            self.step = state.pop("step")
            for name, part in self.parts.items():
                part.load_state_dict(state[name])

    def save(self) -> None:
        """Write the checkpoint atomically."""
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save(state | {"step": self.step}, self.folder / "checkpoint.part")
        (self.folder / "checkpoint.part").rename(self.folder / "checkpoint.pt")

    def update(self, labels: dict[str, Tensor]) -> dict[str, float]:
        """One step over a micro-batch of each domain; the domains' losses on this process."""
        losses = {}
        total = sum(TOKENS_A_STEP.values())
        for domain, labels_BT in labels.items():
            loss = loss_of(self.model, labels_BT)
            (loss * TOKENS_A_STEP[domain] / total).backward()
            losses[domain] = loss.item()
        average_gradients(self.model)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for part in (*self.optimizers, *self.schedules):
            part.step()
        self.model.zero_grad()
        self.step += 1
        return losses


def pretrain(folder: Path) -> None:
    """Train to STEPS on DIR/tokens.json, writing DIR/checkpoint.pt and one line of DIR/log.jsonl per LOG_EVERY."""
    rank, world = dist.get_rank(), dist.get_world_size()
    sequences = json.loads((folder / "tokens.json").read_text())
    run = Pretraining(folder)
    run.resume()
    streams = {
        domain: itertools.islice(
            batches(sequences[domain], tokens, f"{SEED}/{domain}"), run.step * world + rank, None, world
        )
        for domain, tokens in TOKENS_A_STEP.items()
    }
    start, first, sums = time.monotonic(), run.step, dict.fromkeys(TOKENS_A_STEP, 0.0)
    while run.step < STEPS:
        for domain, loss in run.update({domain: next(stream) for domain, stream in streams.items()}).items():
            sums[domain] += loss / LOG_EVERY
        if rank == 0 and run.step % LOG_EVERY == 0:
            pace = (run.step - first) * world * sum(TOKENS_A_STEP.values()) / (time.monotonic() - start)
            row = {"step": run.step, "loss": {d: round(s, 4) for d, s in sums.items()}, "tokens_per_s": round(pace)}
            with (folder / "log.jsonl").open("a") as log:
                log.write(json.dumps(row) + "\n")
            sums = dict.fromkeys(TOKENS_A_STEP, 0.0)
        if rank == 0 and (run.step % SAVE_EVERY == 0 or run.step == STEPS):
            run.save()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pretrain(Path(sys.argv[1]))
    dist.destroy_process_group()
