"""Why a cell has no number, on its way from where it was noticed to the cell's file."""


class Failure(Exception):
    """``outcome`` is one of `header.Outcome` but ok; ``reason`` is one line for a person."""

    def __init__(self, outcome: str, reason: str) -> None:
        reason = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(reason.split()))  # as a server said
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome
        self.reason = reason
