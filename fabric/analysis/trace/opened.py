"""An opened trace: its tables, analyses, and events for structlog.

Events are sorted by (cycle, event, channel or unit, element). ``fabric.messages.vocabulary`` has
the names of fields.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final, Self

from typing_extensions import override

from fabric.analysis.trace.reading.queries import QUERIES
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.analysis.trace.reading.table import Table
from fabric.display.parts import Fold, Sheet, line
from fabric.display.result import Shown
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked
from fabric.messages.causes import Step
from fabric.messages.events import Log, line_logger, log_event, log_for_user, logger_of
from fabric.messages.files import output_file
from fabric.messages.vocabulary import EVENTS, TABLES
from fabric.timing.engine.log import ALLOCATE

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import DeadlockReport
    from fabric.analysis.trace.analysis.critical import CriticalPath
    from fabric.analysis.trace.analysis.diff import TraceDiff
    from fabric.analysis.trace.analysis.moment import Moment
    from fabric.analysis.trace.analysis.stalls import Stalls
    from fabric.analysis.trace.analysis.summary import TraceSummary
    from fabric.analysis.trace.analysis.what_if_result import WhatIf

_CHUNK: Final = 10_000

_SELECTS: Final[dict[str, str]] = {
    "transfer": (
        "SELECT taken_cycle, c.name, element, stop, bare, reserved_cycle, sent_cycle, "
        "visible_cycle, seen_cycle, send_wait_cycles, receive_wait_cycles "
        "FROM transfers JOIN channels c USING (channel) WHERE taken_cycle IS NOT NULL "
        "ORDER BY taken_cycle, c.name, element"
    ),
    "burst": (
        "SELECT end_cycle, name, submitted_cycle, requests, bytes "
        "FROM bursts JOIN units USING (unit) WHERE NOT open ORDER BY end_cycle, name"
    ),
    "held": (
        "SELECT sent_cycle, c.name, element, stop, bare, reserved_cycle, visible_cycle, "
        "seen_cycle, send_wait_cycles, receive_wait_cycles "
        "FROM transfers JOIN channels c USING (channel) WHERE taken_cycle IS NULL "
        "ORDER BY sent_cycle, c.name, element"
    ),
    "open_wait": (
        "SELECT w.end_cycle, u.name, cause, c.name, start_cycle, w.cycles, coalesce(bytes, 0) "
        "FROM waits w JOIN units u USING (unit) LEFT JOIN channels c USING (channel) "
        "LEFT JOIN bursts b ON b.open AND b.unit = w.unit WHERE w.open ORDER BY w.end_cycle, u.name"
    ),
    "allocate": (
        "SELECT cycle, name, waited, amount FROM entries JOIN units USING (unit) "
        f"WHERE operation = {ALLOCATE} ORDER BY cycle, name"
    ),
    **{
        event: (
            "SELECT cycle, u.name, c.name, wait_cycles FROM every_operation "
            "JOIN units u USING (unit) JOIN channels c USING (channel) "
            f"WHERE operation = '{event}' AND element IS NULL ORDER BY cycle, u.name, c.name"
        )
        for event in (Step.END, Step.RESERVE, Step.IDLE)
    },
}


# Methods import their analyses, because a command runs one analysis.


class Trace(RecordedRun, Shown):
    """The trace of one run, opened by ``open_trace`` or ``Report.trace``.

    The whole trace is in memory, independent of the run's folder. A trace is read-only. Several
    traces may be open together, and several threads may use one.

    ``tables`` and ``query`` give columns for pyarrow, polars, pandas and numpy. The analyses return
    the results of ``python -m fabric trace`` as frozen objects.

    Attributes:
        folder: of the trace.
        meta: about the run: name, program, parameters, hardware, mode, window, nodes,
            off_chip.
        status: the end of the run; ``killed`` if none was recorded.
        outcome: the status, and whether the outputs are right.
        failed: the run did not complete, or its outputs are wrong.
        cycles: of the run; the last recorded cycle of a killed run.
        problems: sentences about missing rows and files, and about a repeated run.
        has_state: the last waits of units, and the awaited elements, are recorded.
        window: the first traced cycle, and the cycle after the last traced one.
        hbm: counters of the off-chip memory in the whole run; None if its model has no counters,
            or if the end was not recorded.

    Examples:
        >>> import numpy as np
        >>> from fabric import Program, simulate
        >>> from operators import Exp, LinearOffChipLoad, LinearOffChipStore, Map
        >>> with Program("exp") as program:
        ...     x = LinearOffChipLoad(np.eye(32), tile=(1, 32))()
        ...     LinearOffChipStore("y")(Map(Exp())(x))
        >>> trace = simulate(program, trace="events").trace()
        >>> trace
        Trace(name='exp', status='completed', cycles=633)
        >>> trace.stalls().critical_path.shares[0].root.name
        'the HBM for linear_off_chip_store_1'
        >>> trace.at(100).units[1].doing
        'empty, waits for linear_off_chip_load_1'
        >>> trace.query("SELECT count(*) AS transfers FROM transfers").rows()
        [(64,)]
        >>> int(trace.tables["bursts"].numpy()["bytes"].sum())
        4096
    """

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, such as ``transfers``; ``trace query --list`` explains them."""
        return {name: Table(self, name, f"FROM {name}") for name in TABLES}

    @checked
    def query(self, query: str, *, fold: bool = False) -> Table:
        """Return the rows of ``query``, a ready query's name or SQL that reads the tables.

        Args:
            query: name or SQL.
            fold: return the rows of a ready query by family, as ``trace query`` prints them. SQL
                finds families in the columns of that name.

        Raises:
            ConfigurationError: the database refuses the query, or the trace is closed.
        """
        ready = QUERIES.get(query)
        if ready is None:
            return Table(self, query, query)
        return Table(self, query, (fold and ready.folded) or ready.sql)

    def summary(self) -> TraceSummary:
        """Return the end of the run, the recorded amounts, and the units that had not ended."""
        from fabric.analysis.trace.analysis.summary import summary_of

        return summary_of(self)

    def stalls(self) -> Stalls:
        """Return each unit's cycles by cause, the roots of its waits, and the bound of the run."""
        from fabric.analysis.trace.analysis.stalls import stalls_of

        return stalls_of(self)

    def critical_path(self) -> CriticalPath:
        """Return the chain of work and waits from the first cycle to the last, without a gap."""
        from fabric.analysis.trace.analysis.critical import path_of

        return path_of(self)

    def deadlock(self) -> DeadlockReport | None:
        """Return why units could never continue; None if all could.

        If the run was repeated with deeper channels, a trace opened with ``first=True`` explains
        the first run. The remedy is the one that the run found, if any.
        """
        from fabric.analysis.trace.analysis.moment import deadlock_of

        return deadlock_of(self)

    @checked
    def at(self, cycle: Annotated[int, Bounds(0)]) -> Moment:
        """Return the state of all units and channels in ``cycle``.

        Raises:
            ConfigurationError: the cycle was not recorded.
        """
        from fabric.analysis.trace.analysis.moment import moment_of

        return moment_of(self, cycle)

    @checked
    def diff(self, other: Trace) -> TraceDiff:
        """Return the first difference from ``other``, and the units that are slower in it.

        Units and channels are matched by name.
        """
        from fabric.analysis.trace.analysis.diff import diff_of

        return diff_of(self, other)

    @checked
    def what_if(
        self,
        depths: Mapping[str, int] | None = None,
        work: Mapping[str, float] | None = None,
        links: float = 1,
        *,
        hbm_bandwidth: float = 1,
        hbm_latency: float = 1,
        hbm_ports: float = 1,
    ) -> WhatIf:
        """Return the cycles of the run with other depths, work, links, or another HBM.

        No program runs: the recorded operations are timed again. The result is exact if the order
        of operations cannot change; otherwise ``reasons`` lists the possible changes.

        Args:
            depths: of channels, by ``consumer.input`` or a pattern such as ``load_*.0``.
            work: factors of the working times of units, and of their waits for the HBM, by name,
                by a pattern of names, or by the title of a family, such as ``load_0..127``.
            links: factor of the bytes a cycle on links of the network; ``math.inf`` for unlimited
                links.
            hbm_bandwidth: factor of the bytes a cycle of the HBM.
            hbm_latency: factor of the cycles from a request to its answer.
            hbm_ports: factor of the requests a cycle that a unit hands over.

        Raises:
            ConfigurationError: an unknown channel or unit, a number out of range, ``links``
                without limited links, a memory that does not state its latency or ports, a run
                that did not complete, or an incomplete trace.
        """
        from fabric.analysis.trace.analysis.what_if import what_if_of

        hbm = {"bandwidth": hbm_bandwidth, "latency": hbm_latency, "ports": hbm_ports}
        return what_if_of(self, depths or {}, work or {}, links, hbm)

    @checked
    def tell(self, log: Log) -> int:
        """Send every recorded event to ``log`` in the order of cycles; return their number.

        The events are the lines of ``trace export --jsonl``, at level ``debug``.

        Args:
            log: a logger of structlog or a list of its processors, as for ``simulate``.

        Raises:
            ConfigurationError: ``log`` is something else.
            ProgramError: ``log`` raised.
        """
        name = self.head.name
        return _tell_all(self, partial(log_for_user, logger_of(log, "tell", name)))

    def sheet(self) -> Sheet:
        """Yield the recorded amounts, problems, and the stalls of traced units."""
        yield from self.summary().sheet()
        yield from map(line, self.problems)
        stalls = self.stalls()
        if stalls.units:
            yield line((stalls.verdict, "bold"))
            yield from stalls.cycles_sheet()
            yield Fold("Stages, roots, critical path and gains", stalls.sheet())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        return f"Trace(name={self.head.name!r}, status={self.status!r}, cycles={self.cycles})"


@checked
def open_trace(run: Path | str, *, first: bool = False) -> Trace:
    """Open the trace of a run with ``trace="events"``, complete or not.

    Args:
        run: the run's folder, or the folder of the trace in it.
        first: open the stopped run, if it was repeated with deeper channels. By default the
            repeated run is opened, which the run's report describes.

    Raises:
        ConfigurationError: the folder has no readable trace.
    """
    return Trace(Path(run), first=first)


def write_json_lines(trace: RecordedRun, output: Path) -> int:
    """Write one line per event; return the number of events."""
    with output_file(output, encoding="utf-8") as file:
        logger = line_logger(file).bind(run=trace.head.name)
        return _tell_all(trace, partial(log_event, logger))


def _tell_all(trace: RecordedRun, tell: Callable[[str, dict[str, object]], None]) -> int:
    count = 0
    streams = [_events(trace, event) for event in sorted(_SELECTS)]
    for (_, event), fields in heapq.merge(*streams, key=lambda row: row[0]):
        tell(event, fields)
        count += 1
    return count


def _events(trace: RecordedRun, event: str) -> Iterator[tuple[tuple[int, str], dict[str, object]]]:
    names = EVENTS[event]
    cursor = trace.cursor()
    cursor.execute(_SELECTS[event])
    while rows := cursor.call(lambda connection: connection.fetchmany(_CHUNK)):
        for row in rows:
            yield (row[0], event), dict(zip(names, row, strict=True))
