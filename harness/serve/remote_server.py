"""A server that somebody else started: used like `server.Server`, but neither watched nor ended."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from harness.schema.failure import Failure
from harness.serve.client import server_info
from harness.serve.responses import ServerInfo


class Elsewhere:
    """The server at ``url``."""

    remote = True
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_ready(self, _: float) -> None:
        """It is ready, or `info` says that it is not there."""

    def info(self) -> ServerInfo:
        """``/server_info``. Raises `Failure`."""
        return server_info(self.url)

    def failure(self) -> Failure | None:
        """Only lost connections show it."""
        return None

    def text(self) -> str:
        """Its log is not ours to read."""
        return ""

    tail = text

    def give_up(self) -> None:
        """Somebody else's to restart."""
