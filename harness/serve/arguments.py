"""The arguments that a server says it runs with: ``/server_info`` publishes SGLang's resolved ones at its top level.

Known of every SGLang 0.5.23 server, with our plugin or without, ours or somebody else's. Stored with the cell.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.schema.cell import Cell
from sglang_specbench.arms import Arm

# what is no argument, or changes from start to start and says nothing: ports, names, times, the machine's addresses
_LEFT_OUT = frozenset({"internal_states", "specbench", "version", "frontend", "startup_time", "launch_command", "host"})
_LOCAL = ("port", "_addr", "served_model_name", "_ipc_name", "_instance_id")
_SECRET = ("key", "token", "password", "secret")
_PLAIN = (str, int, float, bool)


def arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in a ``/server_info`` body that are set, by SGLang's names: plain values, lists and tables of them.

    The user's home folder is written ``~``.
    """
    kept = {k: v for k, v in body.items() if k not in _LEFT_OUT and not k.endswith((*_LOCAL, *_SECRET))}
    set_ones = {k: v for k, v in kept.items() if v is not None and v is not False and v not in ("", [], {})}
    return {k: _at_home(v) for k, v in set_ones.items() if _plain(v)}


def disagreements(said: Mapping[str, Any], cell: Cell, arm: Arm, running: int | None) -> list[str]:
    """Where a server's arguments are not the cell's; what the server does not say is not judged here.

    ``running`` is how many requests its scheduler takes at once.
    """
    wanted = {
        "dtype": cell.dtype,
        "device": cell.device,
        "random_seed": cell.seed,
        "context_length": cell.context_length,
        "speculative_algorithm": arm.algorithm or None,
    }
    known = {k for k in wanted if k in said} | ({"speculative_algorithm"} if said else set())
    if said.get("dtype") == "auto":  # the model's own: only an attestation says which
        known.discard("dtype")
    wrong = [k for k in wanted if k in known and said.get(k) != wanted[k]]
    found = [f"{k}: wanted {wanted[k]!r}, server says {said.get(k)!r}" for k in wrong]
    if running is not None and running < cell.capacity:
        found.append(f"capacity: wanted {cell.capacity} requests at once, server takes {running}")
    return found


def _at_home(value: Any) -> Any:
    """``value`` with the home folder as ``~`` and without secrets, however deep."""
    if isinstance(value, Mapping):
        return {k: _at_home(v) for k, v in value.items() if not k.endswith(_SECRET)}
    if isinstance(value, list):
        return [_at_home(item) for item in value]
    home = str(Path.home())
    return value.replace(home, "~") if isinstance(value, str) and len(home) > 1 else value


def _plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and (v is None or _plain(v)) for k, v in value.items())
    return all(map(_plain, value)) if isinstance(value, list) else isinstance(value, _PLAIN)
