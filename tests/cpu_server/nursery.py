"""A process that has SGLang imported already, and forks a server for each line of its stdin.

A server started the ordinary way imports SGLang in three processes, which is most of its start. Here it is imported
once and the three are forked (SGLang would spawn them). Arguments, environment, plugin and all that follows are the
same; one server of the suite is started the ordinary way. A line in: JSON with argv, env, log. A line out: the pid.
"""

import json
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Sequence


def preload() -> None:
    """Everything that launcher, scheduler and detokenizer import; under the environment of a CPU server."""
    import sglang.launch_server
    import sglang.srt.entrypoints.http_server
    import sglang.srt.managers.detokenizer_manager
    import sglang.srt.managers.scheduler
    import sglang.srt.managers.tp_worker
    import sglang.srt.speculative.dflash_worker_v2
    import sglang.srt.speculative.dspark_components.dspark_worker_v2  # noqa: F401


def become_server(argv: Sequence[str], env: dict[str, str], log: str) -> None:
    """In the forked child: what ``python -m sglang.launch_server`` does."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = env.get("PYTHONPATH", "").split(os.pathsep)
    multiprocessing.set_start_method = lambda *args, **kwargs: None  # type: ignore[method-assign]  # keep forking
    sys.argv = ["sglang.launch_server", *argv]
    from sglang.launch_server import run_server
    from sglang.srt.plugins import load_plugins
    from sglang.srt.server_args import prepare_server_args

    load_plugins()
    run_server(prepare_server_args(list(argv)))


def main() -> None:
    """Fork on request until stdin closes."""
    preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended servers leave no zombies, so a pid tells whether one lives
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                become_server(order["argv"], order["env"], order["log"])
            except BaseException:  # noqa: BLE001 - a child must never return into the loop
                traceback.print_exc()
            os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
