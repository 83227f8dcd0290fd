"""Errors that a user can fix, told apart from defects of ours (which keep their traceback)."""


class UserError(Exception):
    """A mistake in a file, flag or environment: one line for the reader, exit code ``exit_code``.

    ``message`` names the file and key; ``hint`` says what to do next.
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message
