"""What a sweep states in keys of its own, and must not state a second time in ``server.args``.

SGLang takes the last value of an argument, and ``server.args`` comes last: a cell called float32 would run, and be
stored, as whatever stands there. Names are those of SGLang 0.5.23; its parser also takes ``--flag=value`` and
unambiguous beginnings of a name, so these are refused alike.
"""

from collections.abc import Sequence

from sglang_specbench.errors import UserError

_MODEL, _DRAFT, _ARM = "target.NAME.path", "target.NAME.drafters", "arms"
_CAPACITY, _SAMPLING = "concurrency", "temperatures"
# argument -> the key that states it; each fills a field of the cell
STATED = {
    "--model-path": _MODEL,
    "--model": _MODEL,
    "--revision": _MODEL,
    "--tokenizer-path": _MODEL,
    "--load-format": _MODEL,  # "dummy" would make up weights
    "--json-model-override-args": _MODEL,
    "--decrypted-config-file": _MODEL,
    "--custom-weight-loader": _MODEL,
    "--speculative-draft-model-path": _DRAFT,
    "--speculative-draft-model": _DRAFT,
    "--speculative-draft-model-revision": _DRAFT,
    "--speculative-draft-load-format": _DRAFT,
    "--decrypted-draft-config-file": _DRAFT,
    "--speculative-algorithm": _ARM,
    "--speculative-num-steps": _ARM,
    "--speculative-eagle-topk": _ARM,
    "--speculative-num-draft-tokens": _ARM,
    "--speculative-dflash-block-size": _ARM,
    "--speculative-dspark-block-size": _ARM,
    "--speculative-domino-candidate-pool-size": _ARM,
    "--speculative-ngram-max-bfs-breadth": _ARM,
    "--speculative-use-rejection-sampling": _ARM,
    "--speculative-accept-threshold-single": _ARM,  # exactness: an arm samples from the target's distribution
    "--speculative-accept-threshold-acc": _ARM,
    "--speculative-adaptive": _ARM,  # changes the number of drafted tokens while it runs
    "--speculative-adaptive-config": _ARM,
    "--dtype": "server.dtype",
    "--device": "server.device",
    "--context-length": "server.context_length",
    "--random-seed": "seeds",
    "--max-running-requests": _CAPACITY,
    "--cuda-graph-bs-decode": _CAPACITY,
    "--cuda-graph-max-bs-decode": _CAPACITY,
    "--cuda-graph-backend-decode": _CAPACITY,
    "--cuda-graph-config": _CAPACITY,
    "--disable-cuda-graph": _CAPACITY,
    "--disable-decode-cuda-graph": _CAPACITY,
    "--sampling-defaults": _SAMPLING,
    "--preferred-sampling-params": _SAMPLING,
}
# no key states these, but the program must: where it looks for the server, and in what it reads the proof
OWNED = ("--host", "--port", "--served-model-name", "--log-level", "--skip-tokenizer-init", "--config")


def refuse_overrides(arguments: Sequence[str], where: str) -> None:
    """`UserError` (naming ``where``) at the first of ``arguments`` that says again what the sweep states."""
    for text in arguments:
        name = text.partition("=")[0].replace("_", "-")
        if not name.startswith("--") or len(name) < 4:
            continue
        meant = next((flag for flag in (*STATED, *OWNED) if flag == name), None)
        meant = meant or next((flag for flag in (*STATED, *OWNED) if flag.startswith(name)), None)
        if meant in STATED:
            raise UserError(
                f"{where}: server.args: {text!r} overrides what {STATED[meant]!r} states",
                f"remove it, and set {STATED[meant]}",
            )
        if meant:
            raise UserError(f"{where}: server.args: {text!r} is specbench's own to set", "remove it")
