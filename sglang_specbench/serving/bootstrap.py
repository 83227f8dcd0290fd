"""What the plugin does in a process of a server: opens the gates, patches the scheduler, publishes the attestation.

SGLang swallows what a plugin raises, but not what a scheduler raises while it builds its workers. So the patches of an
arm are applied inside ``Scheduler.maybe_init_draft_worker``, where an exception ends the server.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from sglang_specbench.attestation import KEY
from sglang_specbench.launch import ServerConfig
from sglang_specbench.serving.patches.table import arm_patches, gate_patches
from sglang_specbench.serving.patching import APPLIED, Patch, apply

TEST_PATCH_ENV = "SPECBENCH_TEST_PATCH"  # "module:function"; see tests/cpu_server/README.md
_SCHEDULER = "sglang.srt.managers.scheduler"


def prepare_process(config: ServerConfig) -> None:
    """Patch this process: the argument gates in every one, the bootstrap hooks in the scheduler only."""
    for patch in gate_patches(config):
        apply(patch)
    if _SCHEDULER in sys.modules:
        for patch in _bootstrap(config):
            apply(patch)


def _bootstrap(config: ServerConfig) -> tuple[Patch, ...]:
    # The attestation comes last: if one of the others does not fit, there is none.
    common = {"delete_when": "SGLang reports a plugin's failure and has a hook for server info"}
    return (
        Patch(
            name="bootstrap_workers",
            target=f"{_SCHEDULER}:Scheduler.maybe_init_draft_worker",
            signature="(self)",
            replace=functools.partial(_installing, config),
            reason="last point before the draft worker exists where an exception is fatal",
            **common,
        ),
        Patch(
            name="bootstrap_runtime",
            target=f"{_SCHEDULER}:Scheduler.get_internal_state",
            signature="(self, recv_req)",
            replace=functools.partial(_reporting, config),
            reason="SGLang downgrades paths at run time with one log line; /server_info must show it",
            **common,
        ),
        Patch(
            name="bootstrap_attestation",
            target=f"{_SCHEDULER}:Scheduler.get_init_info",
            signature="(self)",
            replace=functools.partial(_attesting, config),
            reason="its dictionary becomes the top level of /server_info",
            **common,
        ),
    )


def _installing(config: ServerConfig, original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def maybe_init_draft_worker(self: Any) -> None:
        install(config)
        original(self)

    return maybe_init_draft_worker


def _reporting(config: ServerConfig, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(original)
    def get_internal_state(self: Any, recv_req: Any) -> Any:
        from sglang_specbench.serving.attest import runtime_state

        answer = original(self, recv_req)
        answer.internal_state[KEY] = runtime_state(self, config)
        return answer

    return get_internal_state


def _attesting(config: ServerConfig, original: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    @functools.wraps(original)
    def get_init_info(self: Any) -> dict[str, Any]:
        from sglang_specbench.serving.attest import attest

        return {**original(self), KEY: attest(self, config).to_json()}

    return get_init_info


def install(config: ServerConfig) -> None:
    """Apply the patches of this launch; raises `PatchError`, which ends the server."""
    for patch in arm_patches(config):
        apply(patch)
    fault = os.environ.get(TEST_PATCH_ENV)
    if fault:  # planted by a test; attested, so that such a server is never measured
        module, _, function = fault.partition(":")
        getattr(importlib.import_module(module), function)()
        APPLIED[f"test:{fault}"] = "applied"
