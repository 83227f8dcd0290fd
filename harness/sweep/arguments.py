"""What a sweep's ``server.args`` and ``server.environment`` may not hold.

Both are part of a cell and stand in every result of the run, in ``plan.json`` and in ``sweep.toml``.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sglang_specbench.errors import UserError
from sglang_specbench.launch import own_variables

# SGLang 0.5.23; its parser takes any unambiguous beginning of a flag for the flag
SECRETS = ("--api-key", "--admin-api-key", "--ssl-keyfile-password")
SHARE = "--mem-fraction-static"
_SECRET_VARIABLE = re.compile(r"(.*_)?(KEY|TOKEN|PASSWORD|SECRET)", re.IGNORECASE)
_SECRET = re.compile(r"--.*(key|token|password|secret)", re.IGNORECASE)  # not --max-total-tokens


def refuse_secrets(args: Sequence[str], where: str) -> None:
    """`UserError` if one of ``args`` carries a secret; it is not repeated."""
    for text in args:
        flag = re.split(r"[=\s]", text, maxsplit=1)[0]
        short = len(flag) > len("--a") and any(secret.startswith(flag) for secret in SECRETS)
        if short or _SECRET.fullmatch(flag):
            hint = "leave it out: the server listens on this machine only, and the harness sends no key"
            raise UserError(f"{where}: server.args: {flag} would be written into every result", hint)


def refuse_unsplit(args: Sequence[str], where: str) -> None:
    """`UserError` for a flag and its value in one word, which SGLang takes for a flag that it does not know."""
    for text in args:
        flag, *values = text.split() or [""]
        if flag.startswith("--") and "=" not in flag and values:
            parts = ", ".join(f'"{word}"' for word in (flag, *values))
            raise UserError(f"{where}: server.args: {text!r} is one word", f"write [{parts}]")
    if args and not args[0].startswith("-"):
        raise UserError(f"{where}: server.args: {args[0]!r} is a value without its flag", "name the flag first")


def refuse_out_of_range(args: Sequence[str], where: str) -> None:
    """`UserError` for a share of the GPU's memory that is none: SGLang takes it, and dies of it once it has loaded."""
    words = [part for text in args for part in text.split("=", 1)]
    for flag, value in pairwise(words):
        if flag == SHARE and not _share(value):
            raise UserError(f"{where}: server.args: {SHARE} {value}", "write a share above 0 and below 1, such as 0.8")


def _share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def refuse_variables(environment: Mapping[str, str], where: str) -> None:
    """`UserError` for a variable that is none, carries a secret, or is specbench's own to set."""
    for name in environment:
        found = f"{where}: server.environment: {name[:80]!r}"
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise UserError(f"{found} names no variable", "write letters, digits and '_'")
        if _SECRET_VARIABLE.fullmatch(name):
            raise UserError(f"{found} would be written into every result", "export it before you call specbench")
        if name in own_variables():
            raise UserError(f"{found} is specbench's own to set", "remove it; arms and devices are named elsewhere")
