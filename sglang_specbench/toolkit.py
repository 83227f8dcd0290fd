"""The CUDA toolkit with which a server builds SGLang's kernels at start: found, or put together from pip's packages.

Servers of the DFLASH family compile a sampling module when they start (SGLang 0.5.23, ``load_jit``): they need ninja on
the PATH and, under CUDA_HOME, an nvcc that agrees with its headers, ``curand.h`` and ``lib64/libcudart.so``. pip's
packages have all of it, but no ``lib64`` and no name without a version.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Mapping
from pathlib import Path

from sglang_specbench.atomic_file import whole
from sglang_specbench.device import HOPPER
from sglang_specbench.launch import STAND_IN

CACHE = Path.home() / ".cache" / "specbench"
DEFAULT = Path("/usr/local/cuda")
MODULE, BUILD_S = "sglang_specbench.serving.jit_module", 900


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with the interpreter's folder on the PATH and, if the user's own toolkit does not work, our CUDA_HOME.

    Without a toolkit that works anywhere, CUDA_HOME stays as it is, and `doctor` says what is wrong with it.
    """
    folder = str(Path(sys.executable).parent)
    path = base.get("PATH", os.defpath)
    made = {**base, "PATH": path if folder in path.split(os.pathsep) else os.pathsep.join((folder, path))}
    own = home(base)
    if own is None or faults(own):
        ours = prepare()
        if ours is not None and not faults(ours):
            made["CUDA_HOME"] = str(ours)
    return made


def report(base: Mapping[str, str]) -> str:
    """One line for `specbench doctor`: the toolkit that a server would get, or what is wrong with it."""
    made = environment(base)
    if shutil.which("ninja", path=made["PATH"]) is None:
        return "not fit: ninja is missing (pip install ninja)"
    found = home(made)
    if found is None:
        return "not fit: none found; pip install 'sglang-specbench[serve]' brings one"
    wrong = faults(found)
    return f"not fit: {'; '.join(wrong)}" if wrong else f"{found}, CUDA {_nvcc_version(found / 'bin/nvcc')}"


def build(base: Mapping[str, str], here: bool) -> str:
    """``built``, or why the module that a server builds at start cannot be; a minute, the first time.

    Without a GPU ``here`` it is built for a Hopper that is not.
    """
    made, command = environment(base), [sys.executable, "-m", MODULE, *([] if here else [str(HOPPER)])]
    if not here:
        made["PYTHONPATH"] = os.pathsep.join((str(STAND_IN), base.get("PYTHONPATH", "")))
    try:
        done = subprocess.run(command, env=made, capture_output=True, text=True, check=False, timeout=BUILD_S)
    except subprocess.TimeoutExpired:
        return f"not built within {BUILD_S} s"
    last = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()][-1:]
    return last[0] if last else f"not built: exit code {done.returncode}"


def home(base: Mapping[str, str]) -> Path | None:
    """Where SGLang's builder would look: CUDA_HOME, CUDA_PATH, the nvcc on the PATH, /usr/local/cuda."""
    named = base.get("CUDA_HOME") or base.get("CUDA_PATH")
    if named:
        return Path(named)
    nvcc = shutil.which("nvcc", path=base.get("PATH", os.defpath))
    if nvcc:
        return Path(nvcc).parent.parent
    return DEFAULT if DEFAULT.exists() else None


def faults(root: Path) -> list[str]:
    """Why a module cannot be built with the toolkit in ``root``; empty when it can."""
    needed = ("bin/nvcc", "include/cuda_runtime_api.h", "include/curand.h", "lib64/libcudart.so")
    missing = [f"{root / name} is missing" for name in needed if not (root / name).exists()]
    if missing:
        return missing
    compiler, headers = _nvcc_version(root / "bin/nvcc"), _header_version(root / "include/cuda_runtime_api.h")
    if compiler != headers:
        return [f"{root}: nvcc {compiler or 'that does not run'} against headers {headers}"]
    return []


def prepare(packages: Path | None = None, cache: Path = CACHE) -> Path | None:
    """A folder of links to pip's ``nvidia/cu13`` as a toolkit must look; None where the packages have no nvcc."""
    source = (packages or Path(sysconfig.get_paths()["purelib"])) / "nvidia" / "cu13"
    if not (source / "bin" / "nvcc").is_file():
        return None
    version = _header_version(source / "include" / "cuda_runtime_api.h")
    folder = cache / f"cuda-{version}-{zlib.crc32(str(source).encode()):08x}"
    (folder / "lib64").mkdir(parents=True, exist_ok=True)
    for name in ("bin", "include", "nvvm"):
        _link(folder / name, source / name)
    for library in sorted((source / "lib").iterdir()):
        _link(folder / "lib64" / library.name, library)
        if ".so." in library.name:  # the linker looks for the name without a version
            _link(folder / "lib64" / f"{library.name.partition('.so.')[0]}.so", library)
    return folder


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    with whole(link) as fresh:  # servers start side by side
        fresh.symlink_to(target)


def _nvcc_version(nvcc: Path) -> str:
    try:
        done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return found.group(1) if found else ""


def _header_version(header: Path) -> str:
    found = re.search(r"#define CUDART_VERSION\s+(\d+)", header.read_text()) if header.is_file() else None
    return f"{int(found.group(1)) // 1000}.{int(found.group(1)) % 1000 // 10}" if found else ""
