"""One server as data: the arguments and environment with which SGLang serves one arm.

Pure and standard library only: nothing is started, read or looked up here. The flags are those of SGLang 0.5.23; why
each is there stands beside it.
"""

import itertools
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sglang_specbench import width
from sglang_specbench.arms import ARMS, WINDOW, Arm, Proposal
from sglang_specbench.config import from_dict
from sglang_specbench.device import attention_backend

CONFIG_ENV = "SPECBENCH_CONFIG"
PATH = "PYTHONPATH"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
STAND_IN = Path(__file__).parent / "serving" / "cpu"  # holds the torch stand-in for the sgl_kernel wheel


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """What the plugin is told through the environment variable ``SPECBENCH_CONFIG`` (JSON)."""

    arm: str
    proposal: Proposal
    device: str  # cpu | cuda
    target: str  # checkpoint folder
    draft: str = ""  # checkpoint folder, or "" for arms without one

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ServerConfig":
        """Inverse of `to_json`; `UserError` on unknown, missing or ill-typed keys."""
        return from_dict(cls, json.loads(text), CONFIG_ENV)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One ``sglang.launch_server`` process: `argv` for ``python``, `env` on top of the caller's environment."""

    arm: str
    proposal: Proposal
    target: str  # checkpoint folder
    draft: str | None = None  # checkpoint folder
    device: str = "cuda"  # cuda | cpu
    dtype: str = "bfloat16"
    port: int
    seed: int
    concurrency: int = 1  # the most requests that will be in flight; graphs are captured up to it
    context_length: int = 8192  # tokens, prompt and answer
    window: int = WINDOW  # positions verified a block, by the drafter's checkpoint; of no meaning without a block head
    capability: int = 90  # compute capability of the GPU (90 is 9.0): the attention backend follows it
    extra: tuple[
        str, ...
    ] = ()  # of the sweep, as env(1) has it: NAME=value words, then arguments, last, so that they win

    @property
    def config(self) -> ServerConfig:
        """What the plugin in the server is told."""
        return ServerConfig(
            arm=self.arm,
            proposal=self.proposal,
            device=self.device,
            target=self.target,
            draft=self.draft or "",
        )

    @property
    def argv(self) -> tuple[str, ...]:
        """``-m sglang.launch_server ...``, to be run with the interpreter that has SGLang."""
        device = _cpu_flags(self) if self.device == "cpu" else _cuda_flags(self)
        return ("-m", "sglang.launch_server", *_common_flags(self), *device, *self._spec_flags(), *self._added()[1])

    @property
    def env(self) -> dict[str, str]:
        """The variables that this launch sets; everything else is inherited."""
        own = _OWN_ENV | {CONFIG_ENV: self.config.to_json()}
        own |= (_CPU_ENV if self.device == "cpu" else {}) | ARMS[self.arm].environment(self.proposal)
        return _over(own, self._added()[0])

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """``base`` with `env` laid over it; a PYTHONPATH of ``base`` stays, behind ours."""
        return _over(self.env, {**base, **{k: v for k, v in self.env.items() if k != PATH}})

    def _added(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The variables and the arguments in ``extra``."""
        words = list(itertools.takewhile(_VARIABLE.match, self.extra))
        return dict(word.split("=", 1) for word in words), self.extra[len(words) :]

    def _spec_flags(self) -> tuple[str, ...]:
        arm: Arm = ARMS[self.arm]
        if not arm.algorithm:
            return ()
        draft = ("--speculative-draft-model-path", self.draft) if self.draft else ()
        backend = ("--speculative-draft-attention-backend", "torch_native") if self.device == "cpu" else ()
        stated = (*width.flags(arm, self.window), *arm.flags)
        return ("--speculative-algorithm", arm.algorithm, *draft, *backend, *stated)


def own_variables() -> frozenset[str]:
    """Names of the variables that some launch sets, which a sweep may not; all may add to PYTHONPATH."""
    proposals: tuple[Proposal, ...] = ("none", "argmax", "sampled")
    arms = {name for arm in ARMS.values() for proposal in proposals for name in arm.environment(proposal)}
    return frozenset({*_OWN_ENV, CONFIG_ENV, *_CPU_ENV, *arms}) - {PATH}


def _over(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """``second`` laid over ``first``; of two PYTHONPATHs the first one leads."""
    paths = [found[PATH] for found in (first, second) if PATH in found]
    return {**first, **second, **({PATH: os.pathsep.join(paths)} if paths else {})}


_OWN_ENV = {
    "SGLANG_PLUGINS": "specbench",  # and no other installed plugin
    "SGLANG_EXPOSE_OWN_ENV_VARS": "1",  # /server_info then shows the SGLANG_* it read
    "TOKENIZERS_PARALLELISM": "false",
}
_CPU_ENV = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "PYTHONPATH": str(STAND_IN),
    "CUDA_VISIBLE_DEVICES": "",  # a GPU that is present must not change which kernels are chosen
    "OMP_NUM_THREADS": "1",  # OpenMP barriers under contention cost up to 50x (docs/architecture.md)
    "MKL_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # DFlash2's torch.compile would need a C++ compiler and 7 s
}


def _common_flags(launch: Launch) -> tuple[str, ...]:
    return (
        "--model-path", launch.target,
        "--host", "127.0.0.1", "--port", str(launch.port),
        "--dtype", launch.dtype,
        "--page-size", "1",
        "--context-length", str(launch.context_length),
        "--max-running-requests", str(launch.concurrency + 4),  # spec arms reset an unset one to 48, AR does not
        "--min-free-slots-delay", "1",  # off: else it is on for DFLASH and DSPARK only
        "--disable-radix-cache",  # a prefix hit would shorten one arm's prefill
        "--random-seed", str(launch.seed),
        "--sampling-defaults", "openai",  # else generation_config.json sets top_p and top_k
        "--enable-metrics",  # adds the per-request times to meta_info
        "--log-level", "info",  # the proof lines are INFO
        "--skip-server-warmup",  # the runner warms up with prompts of the real length mix
    )  # fmt: skip


def _cuda_flags(launch: Launch) -> tuple[str, ...]:
    sizes = tuple(map(str, graph_sizes(launch.concurrency)))
    return (
        "--attention-backend", attention_backend(launch.capability),  # SGLang's default differs between arms
        "--mem-fraction-static", "0.80",
        "--chunked-prefill-size", "8192",
        "--cuda-graph-bs-decode", *sizes,
    )  # fmt: skip


def _cpu_flags(launch: Launch) -> tuple[str, ...]:
    return (
        "--device", "cpu",
        "--attention-backend", "torch_native",
        "--sampling-backend", "pytorch",
        "--disable-cuda-graph",
        "--sleep-on-idle",  # else the scheduler spins, on the cores that the client and the tokenizer need
        "--disable-overlap-schedule",  # one thread: overlap only adds a step in flight after EOS
        "--max-total-tokens", str((launch.concurrency + 1) * launch.context_length),
    )  # fmt: skip


def graph_sizes(concurrency: int) -> tuple[int, ...]:
    """Decode batch sizes to capture: powers of two up to ``concurrency``, and ``concurrency`` itself."""
    powers = {1 << i for i in range(concurrency.bit_length())}
    return tuple(sorted(powers | {concurrency}))
