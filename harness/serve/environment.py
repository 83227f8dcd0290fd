"""On what a cell was measured: versions, device, driver, threads, clocks; and what must not be written down.

Runs of unlike environments never merge: `harness.schema.comparable.ENVIRONMENT` says which keys count. Reads package
metadata, /proc and nvidia-smi; imports neither torch nor sglang.
"""

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.serve.responses import ServerInfo
from sglang_specbench import __version__

UNKNOWN = "unknown"  # of a server that somebody else started
_GPU_QUERY = ("name", "driver_version", "clocks.sm", "clocks.mem", "temperature.gpu", "power.limit")
_SECRET = re.compile(r"(^|[-_])(key|token|password|secret)$", re.IGNORECASE)  # not --max-total-tokens


def environment(info: ServerInfo, device: str, remote: bool, attested: bool) -> dict[str, Any]:
    """Of a server that runs on this machine, or elsewhere (``remote``)."""
    attestation = info.attestation or {}
    gpu = gpu_state() if device == "cuda" and not remote else {}
    return {
        "device_name": UNKNOWN if remote else gpu.get("name") or cpu_name(),
        "driver": UNKNOWN if remote else gpu.get("driver_version", ""),
        "sglang": info.sglang_version,
        "torch": UNKNOWN if remote else _version("torch"),
        "python": platform.python_version(),
        "specbench": __version__,
        "threads": attestation.get("threads", 0),
        "attested": attested,
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "commit": _commit(),
        "load": round(os.getloadavg()[0], 2),
        "gpu": gpu,
    }


def gpu_state() -> dict[str, str]:
    """Name, driver, clocks (MHz), temperature (C) and power limit (W) of the first visible GPU; {} without one."""
    return nvidia_smi(_GPU_QUERY)


def nvidia_smi(names: Sequence[str], kind: str = "gpu") -> dict[str, str]:
    """What nvidia-smi says of ``names`` on the first visible GPU; {} without one, or if it does not know a name.

    ``kind`` is its query: gpu, or compute-apps, whose lines are joined by newlines.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    command = ("nvidia-smi", f"--id={first}", f"--query-{kind}={','.join(names)}", "--format=csv,noheader,nounits")
    lines = [line.split(",") for line in _printed(command).splitlines()]
    columns = zip(*lines, strict=False) if lines else ()
    return {name: "\n".join(part.strip() for part in column) for name, column in zip(names, columns, strict=False)}


def cpu_name() -> str:
    """The processor's model name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def redact(arguments: Sequence[str]) -> tuple[str, ...]:
    """``arguments`` without the values of secret flags and without the user's home folder."""
    clean, hide = list[str](), False
    for text in arguments:
        flag, equals, _ = text.partition("=")
        secret = flag.startswith("--") and bool(_SECRET.search(flag))
        clean.append("***" if hide else f"{flag}=***" if secret and equals else _at_home(text))
        hide = secret and not equals
    return tuple(clean)


def redact_env(variables: Mapping[str, str]) -> dict[str, str]:
    """``variables`` without secret values and without the user's home folder."""
    return {name: "***" if _SECRET.search(name) else _at_home(value) for name, value in variables.items()}


def _at_home(text: str) -> str:
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit of the checkout that this package runs from, ``+`` if it was changed; "" when installed."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    changed = _output(("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"))
    return _output(("git", "-C", str(root), "rev-parse", "--short=12", "HEAD")) + ("+" if changed else "")


def _output(command: Sequence[str]) -> str:
    """First line of what ``command`` prints; "" if it is not there or fails."""
    return _printed(command).partition("\n")[0]


def _printed(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
