"""One server as data: the arguments and environment with which SGLang serves one arm.

Pure and standard library only: nothing is started, read or looked up here. The flags are those of SGLang 0.5.23; why
each is there stands beside it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sglang_specbench import width
from sglang_specbench.arms import ARMS, WINDOW, Arm, Proposal
from sglang_specbench.config import from_dict
from sglang_specbench.device import attention_backend

CONFIG_ENV = "SPECBENCH_CONFIG"
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
    extra: tuple[str, ...] = ()  # server arguments of the sweep, last, so that they win

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
        return ("-m", "sglang.launch_server", *_common_flags(self), *device, *self._spec_flags(), *self.extra)

    @property
    def env(self) -> dict[str, str]:
        """The variables that this launch sets; everything else is inherited."""
        own = {
            "SGLANG_PLUGINS": "specbench",  # and no other installed plugin
            "SGLANG_EXPOSE_OWN_ENV_VARS": "1",  # /server_info then shows the SGLANG_* it read
            "TOKENIZERS_PARALLELISM": "false",
            CONFIG_ENV: self.config.to_json(),
        }
        return own | (_CPU_ENV if self.device == "cpu" else {}) | ARMS[self.arm].environment(self.proposal)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """``base`` with `env` laid over it; a PYTHONPATH of ``base`` stays, behind ours."""
        merged = {**base, **self.env}
        if "PYTHONPATH" in base and "PYTHONPATH" in self.env:
            merged["PYTHONPATH"] = os.pathsep.join((self.env["PYTHONPATH"], base["PYTHONPATH"]))
        return merged

    def _spec_flags(self) -> tuple[str, ...]:
        arm: Arm = ARMS[self.arm]
        if not arm.algorithm:
            return ()
        draft = ("--speculative-draft-model-path", self.draft) if self.draft else ()
        backend = ("--speculative-draft-attention-backend", "torch_native") if self.device == "cpu" else ()
        stated = (*width.flags(arm, self.window), *arm.flags)
        return ("--speculative-algorithm", arm.algorithm, *draft, *backend, *stated)


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
