"""Which options of `specbench model` go together: each question reads some, and the others are refused, not ignored."""

import typer

from sglang_specbench.errors import UserError

BLOCK = ("drafted", "positions")
STATED = ("cost", "parallel", "slope")
ROOFLINE = ("target", "drafter", "hardware", "gpus", "context", "t0")
ONE_BATCH = ("tree", "speedup")  # questions about a single batch
# the option that makes the question -> the options that its answer reads; "" is a question of alpha alone
READS = {
    "run": ("target", "hardware", "gpus", "context"),
    "survival": ("widths", *STATED, *ROOFLINE),
    "tree": ("marginals", "batch", *STATED, *ROOFLINE),
    "rejection": (),
    "speedup": ("batch", *BLOCK, *STATED, *ROOFLINE),
    "": ("alpha", "batch", *BLOCK, *STATED, *ROOFLINE),
}


def check_options(ctx: typer.Context) -> str:
    """The option that makes the question (a key of `READS`); `UserError` for two, and for one that is not read."""
    given = [name for name in ctx.params if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"]
    if empty := [name for name in given if ctx.params[name] == ""]:
        raise UserError(f"model: --{empty[0]} is empty", "give it a value, or leave it out")
    makes = [name for name in READS if name in given]
    if len(makes) > 1 or (makes and "alpha" in given):
        named = " and ".join(f"--{name}" for name in (["alpha"] if "alpha" in given else []) + makes)
        raise UserError(f"model: {named} do not go together", "give one of them")
    asked = makes[0] if makes else ""
    idle = [name for name in given if name not in (asked, "as_json", *READS[asked])]
    clash = (*ROOFLINE, *STATED) if "widths" in given else STATED if "target" in given else ()
    idle = idle or [name for name in given if name in clash]
    if not idle and "target" not in given and asked != "run":
        idle = [name for name in given if name in ROOFLINE or name == "batch"]
    if idle:
        raise UserError(f"model: --{idle[0]} {_why_idle(idle[0], asked, given)}", "see: specbench model --help")
    return asked


def batches(text: str, one: bool = False) -> list[int]:
    """``8`` or ``1:1024``: the first, every power of two between, the last; `UserError` where only ``one`` is meant."""
    first, colon, last = text.partition(":")
    if one and colon:
        raise UserError(f"model: --batch {text}: a tree and a speedup are of one batch", "write --batch 8")
    try:
        low, high = int(first), int(last if colon else first)
    except ValueError:
        raise UserError(f"model: --batch {text!r} is no batch", "write 8, or 1:1024") from None
    if not 1 <= low <= high <= 1 << 20:
        raise UserError(f"model: --batch {text}: not between 1 and {1 << 20:,}, first to last", "write 1:1024")
    return sorted({low, *(b for b in (1 << k for k in range(21)) if low < b < high), high})


def _why_idle(name: str, asked: str, given: list[str]) -> str:
    owners = [option for option, read in READS.items() if name in read]
    if name in READS[asked]:
        beside = next((other for other in ("widths", "target") if other in given and other != name), "")
        return f"says nothing beside --{beside}" if beside else "says nothing without --target"
    if len(owners) == 1 and owners[0]:
        return f"says nothing without --{owners[0]}"
    return f"says nothing beside --{asked}" if asked else "says nothing without --target"
