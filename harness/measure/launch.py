"""One launch of a plan: a server up and admitted, its cells measured one after another, each ending as a file.

After a cell that failed, the rest get a fresh server, so a cell that kills its server costs the others nothing but
time. Nothing is tried twice here.
"""

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.measure.cell import Bench, Measured, measure, prompts_digest
from harness.measure.validity import refusals
from harness.prompts.load import MissingSet
from harness.prompts.tokenized import Desk
from harness.schema.cell import Cell
from harness.schema.failure import Failure
from harness.schema.file_name import file_name
from harness.schema.header import BY_CALL, Header
from harness.serve.environment import environment, gpu_state, redact, redact_env
from harness.serve.machine_load import Snapshot, snapshot
from harness.serve.remote_server import Elsewhere
from harness.serve.server import Server, free_port
from harness.store import cell_file, row_checks
from harness.store import run as store
from harness.store.lock import RECORDS
from harness.sweep.plan import Allocation, PlannedLaunch
from harness.sweep.sweep import Sweep
from sglang_specbench.device import capability
from sglang_specbench.errors import UserError
from sglang_specbench.launch import Launch


def on_this_machine(planned: PlannedLaunch, port: int) -> Launch:
    """The process that serves ``planned`` here: what `specbench run` starts, and what `specbench serve` does."""
    return replace(planned.server(port), capability=capability())


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one ``specbench run`` asks for, apart from the plan."""

    run_dir: Path
    sweep: Sweep
    data_dirs: tuple[Path, ...] = ()
    url: str = ""  # measure this running server instead of starting any
    keep_output: bool = False
    call: str = field(default_factory=lambda: secrets.token_hex(4))  # tells this `specbench run` from others


@dataclass(frozen=True, kw_only=True)
class Watchers:
    """Who is told how it goes."""

    note: Callable[[str], None] = lambda _: None
    conversation: Callable[[], None] = lambda: None
    cell: Callable[[Header], None] = lambda _: None


@dataclass(kw_only=True)
class Session:
    """``planned`` of ``allocation``, of which ``left`` is still to be measured."""

    order: Order
    allocation: Allocation
    planned: PlannedLaunch
    desk: Desk
    watchers: Watchers
    left: list[Cell]
    _shown: dict[str, Any] = field(default_factory=dict)  # header fields that the server of the moment has shown

    def run(self) -> None:
        """Every cell of `left` becomes a file. `UserError` (exit code 5) if files cannot be written."""
        for cell in list(self.left):
            try:
                self.desk.get(cell)
            except MissingSet as missing:
                self._write(cell, Measured(outcome="missing_set", reason=str(missing)))
        while self.left:
            self._serve()

    def _serve(self) -> None:
        """Measure cells of `left` on one server, up to the first that fails."""
        server = self._server()
        self._shown = {}
        try:
            with server:
                self.watchers.note(f"{self.allocation.id}: starting {self.planned.arm}/{self.planned.proposal}")
                server.wait_ready(self.order.sweep.server.start_timeout_s)
                self._admit(server)
                self._measure(server)
        except Failure as failure:  # of the server itself: no cell that is left can be measured
            self.watchers.note(f"{self.allocation.id}: {failure}")
            for cell in list(self.left):
                self._write(cell, Measured(outcome=failure.outcome, reason=failure.reason), server.tail())

    def _server(self) -> Server | Elsewhere:
        if self.order.url:
            return Elsewhere(self.order.url)
        planned, folder = self.planned, self.order.run_dir
        log = f"{file_name(self.allocation.id)}-{planned.order:02d}-{planned.arm}-{planned.id}.log"
        return Server(on_this_machine(planned, free_port()), folder / "logs" / log, folder / RECORDS)

    def _admit(self, server: Server | Elsewhere) -> None:
        """`Failure` unless the server proves that it is what the launch asked for."""
        info = server.info()
        attested = info.attestation is not None
        self._shown = {
            "environment": environment(info, self.left[0].device, remote=server.remote, attested=attested),
            "attestation": dict(info.attestation or {}),
            "server_argv": redact(server.argv),
            "server_args": dict(info.arguments),
            "server_env": redact_env(server.env),
        }
        if found := refusals(info, self.planned.cells[0], server.text(), server.remote, self.planned.window):
            server.give_up()
            raise Failure("not_attested", "; ".join(found))

    def _measure(self, server: Server | Elsewhere) -> None:
        window = int(self._shown["attestation"].get("window", self.planned.window))
        bench = Bench(
            url=server.url,
            watch=server.failure,
            log=server.text,
            window=window,
            render=lambda talk: self.desk.renderer.render(talk),
            request_timeout_s=self.order.sweep.server.request_timeout_s,
            min_wall_s=self.order.sweep.min_wall_s,
            keep_output=self.order.keep_output,
            on_done=self.watchers.conversation,
            look=None if isinstance(server, Elsewhere) else self._look(server),
        )
        for cell in list(self.left):
            self.watchers.note(cell.label)
            ready, began = self.desk.get(cell), datetime.now(UTC)
            measured = measure(cell, ready.conversations, bench)
            failed = measured.outcome != "ok"
            if failed:
                server.give_up()
            self._write(cell, measured, server.tail() if failed else "", began)
            if failed:
                return

    def _look(self, server: Server) -> Callable[[], Snapshot]:
        return lambda: snapshot(server.pids(), self.planned.cells[0].device == "cuda")

    def _write(self, cell: Cell, measured: Measured, tail: str = "", began: datetime | None = None) -> None:
        header = self._header(cell, measured, tail, began)
        try:
            store.write_cell(self.order.run_dir, header, measured.rows)
        except OSError as error:
            small = replace(header, outcome="infrastructure", reason=f"not written: {error.strerror}", wall_s=None)
            with contextlib.suppress(OSError):
                store.write_cell(self.order.run_dir, replace(small, log_tail="", warmup={}), [])
            raise UserError(
                f"{self.order.run_dir}: cell {cell.id} cannot be written: {error.strerror}",
                "finished cells are whole: make room and run the same command again",
                exit_code=5,
            ) from None
        self.left.remove(cell)
        self.watchers.cell(header)

    def _allocation(self) -> str:
        """On a server that somebody else started, only what one call measured is one allocation."""
        return f"{self.allocation.id}{BY_CALL}{self.order.call}" if self.order.url else self.allocation.id

    def _header(self, cell: Cell, measured: Measured, tail: str, began: datetime | None) -> Header:
        shown = dict(self._shown)
        if shown and cell.device == "cuda" and not self.order.url:
            shown["environment"] = {**shown["environment"], "gpu": gpu_state()}
        cautions = list(measured.cautions)
        ready = None if measured.outcome == "missing_set" else self.desk.get(cell)
        if shown and not shown["environment"]["attested"]:
            cautions.append("unattested: the server cannot prove what it runs")
        return Header(
            cell=cell,
            outcome=measured.outcome,
            reason=measured.reason,
            log_tail=tail,
            wall_s=measured.wall_s,
            started_at=(began or datetime.now(UTC)).isoformat(timespec="seconds"),
            allocation=self._allocation(),
            launch=self.planned.id,
            order=self.planned.order,
            prompts_digest=prompts_digest(ready.conversations) if ready else "",
            warmup=measured.warmup,
            provenance=dict(self.planned.provenance),
            call=self.order.call,
            reached=row_checks.reached(cell_file.as_table(measured.rows)),
            counters=measured.counters,
            machine=measured.machine,
            cautions=(*cautions, *(ready.notes if ready else ())),
            **shown,
        )
