"""What a sweep's ``server.args`` may not hold.

Arguments are part of a cell and stand in every result of the run, in ``plan.json`` and in ``sweep.toml``.
"""

import re
from collections.abc import Sequence

from sglang_specbench.errors import UserError

# SGLang 0.5.23; its parser takes any unambiguous beginning of a flag for the flag
SECRETS = ("--api-key", "--admin-api-key", "--ssl-keyfile-password")
_SECRET = re.compile(r"--.*(key|token|password|secret)", re.IGNORECASE)  # not --max-total-tokens


def refuse_secrets(args: Sequence[str], where: str) -> None:
    """`UserError` if one of ``args`` carries a secret; it is not repeated."""
    for text in args:
        flag = re.split(r"[=\s]", text, maxsplit=1)[0]
        short = len(flag) > len("--a") and any(secret.startswith(flag) for secret in SECRETS)
        if short or _SECRET.fullmatch(flag):
            hint = "leave it out: the server listens on this machine only, and the harness sends no key"
            raise UserError(f"{where}: server.args: {flag} would be written into every result", hint)
