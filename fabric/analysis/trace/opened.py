"""The trace of a run, opened: its tables, what follows from them, and its events as structlog's.

Sorted by (cycle, event, channel or unit, element); names of fields are
those of ``fabric.messages.vocabulary``.
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
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked
from fabric.messages.causes import Step
from fabric.messages.events import Log, line_logger, logger_of, tell_event, tell_user
from fabric.messages.files import output_file
from fabric.messages.vocabulary import EVENTS, TABLES
from fabric.timing.engine.log import ALLOCATE

if TYPE_CHECKING:
    from fabric.analysis.deadlock.document import DeadlockReport
    from fabric.analysis.trace.analysis.critical import CriticalPath
    from fabric.analysis.trace.analysis.diff import TraceDiff
    from fabric.analysis.trace.analysis.moment import Moment
    from fabric.analysis.trace.analysis.stalled import Stalls
    from fabric.analysis.trace.analysis.summary import TraceSummary
    from fabric.analysis.trace.analysis.what_if import WhatIf

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


# Analyses are imported by whoever asks for them: a command asks for one.


class Trace(RecordedRun):
    """The trace of one run, opened by ``open_trace`` or ``Report.trace``.

    The whole trace is in memory, so the run's folder is no longer needed. Several traces may be
    open at once, and several threads may use one. Nothing changes it.

    ``tables`` and ``query`` give columns for pyarrow, polars, pandas and numpy; the analyses are
    what ``python -m fabric trace`` prints, as frozen objects.

    Attributes:
        folder: of the trace.
        meta: about the run: name, program, parameters, hardware, mode, window, nodes,
            off_chip.
        status: how the run ended; ``killed`` where it did not say.
        outcome: the same, and what became of its outputs.
        failed: it did not complete, or its outputs are wrong.
        cycles: of the run; the last recorded cycle where it was killed.
        problems: sentences about what is missing.
        has_state: it says what units waited for, and for which elements.
        window: the cycles that were traced, the last one not included.
        hbm: what its off-chip memory has counted in the whole run; None where the model counts
            nothing, or where the run did not say how it ended.

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
            query: which.
            fold: of a ready query, the rows by family, as ``trace query`` prints them; SQL finds
                families in the columns of that name.

        Raises:
            ConfigurationError: the database refuses it, or the trace is closed.
        """
        ready = QUERIES.get(query)
        if ready is None:
            return Table(self, query, query)
        return Table(self, query, (fold and ready.folded) or ready.sql)

    def summary(self) -> TraceSummary:
        """Return how the run ended, how much was recorded, and who had not ended."""
        from fabric.analysis.trace.analysis.summary import summary_of

        return summary_of(self)

    def stalls(self) -> Stalls:
        """Return where each unit's cycles went, whom it waited for, and what bounds the run."""
        from fabric.analysis.trace.analysis.stalled import stalls_of

        return stalls_of(self)

    def critical_path(self) -> CriticalPath:
        """Return what the run went through from its first cycle to its last, without a gap."""
        from fabric.analysis.trace.analysis.critical import path_of

        return path_of(self)

    def deadlock(self) -> DeadlockReport | None:
        """Return why units could never go on; None where all could.

        Of a run that was run again with deeper channels, the first one is explained where the
        trace was opened with ``first=True``. The remedy is that of the run, if it found one.
        """
        from fabric.analysis.trace.analysis.moment import analysed

        return analysed(self)

    @checked
    def at(self, cycle: Annotated[int, Bounds(0)]) -> Moment:
        """Return what everyone was doing in ``cycle``.

        Raises:
            ConfigurationError: the cycle was not recorded.
        """
        from fabric.analysis.trace.analysis.moment import moment_of

        return moment_of(self, cycle)

    @checked
    def diff(self, other: Trace) -> TraceDiff:
        """Return where ``other`` parts from this run, and which of its units got slower.

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
    ) -> WhatIf:
        """Return what the run would have taken with other depths, work or links.

        Nothing is run: what each unit did is timed again. That is exact where other depths change
        nothing but when; else ``reasons`` says what they may change.

        Args:
            depths: of channels, by ``consumer.input`` or a pattern such as ``load_*.0``.
            work: how many times as long units work, by name, by a pattern of names, or by the
                title of a family as the tables show it, such as ``load_0..127``.
            links: how many times as many bytes a cycle links of the network carry; ``math.inf`` for
                any number.

        Raises:
            ConfigurationError: there is no such channel or unit, a number is out of range, links
                are asked for and none has a limit, the run
                did not complete, or not all of it was traced or is there.
        """
        from fabric.analysis.trace.analysis.what_if import what_if_of

        return what_if_of(self, depths or {}, work or {}, links)

    @checked
    def tell(self, log: Log) -> int:
        """Tell ``log`` of every recorded event, in the order of cycles; return how many there are.

        They are the lines of ``trace export --jsonl``, at level ``debug``.

        Args:
            log: a logger of structlog or a list of its processors, as ``simulate`` takes it.

        Raises:
            ConfigurationError: it is something else.
            ProgramError: it raised.
        """
        return tell_trace(self, log)

    def __enter__(self) -> Self:
        """Return the trace, to be closed behind the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    @override
    def __repr__(self) -> str:
        name = self.meta.get("name")
        return f"Trace(name={name!r}, status={self.status!r}, cycles={self.cycles})"


@checked
def open_trace(run: Path | str, *, first: bool = False) -> Trace:
    """Open the trace that a run with ``trace="events"`` wrote, whether it came to its end or not.

    Args:
        run: the run's folder, or the folder of the trace in it.
        first: of a run that stopped and was run again with deeper channels, the one that stopped;
            else it is the second one, which the run's report is about.

    Raises:
        ConfigurationError: there is no trace that can be read.
    """
    return Trace(Path(run), first=first)


def write_json_lines(trace: RecordedRun, output: Path) -> int:
    """Write one line an event and return how many there are."""
    with output_file(output, encoding="utf-8") as file:
        logger = line_logger(file).bind(run=_name(trace))
        return _tell_all(trace, partial(tell_event, logger))


def tell_trace(trace: RecordedRun, log: Log) -> int:
    """Tell a user's ``log`` of every event and return how many there are.

    Raises:
        ConfigurationError: it is no logger, and no processors.
        ProgramError: it raised.
    """
    return _tell_all(trace, partial(tell_user, logger_of(log, "tell", _name(trace))))


def _name(trace: RecordedRun) -> str:
    return str(trace.meta.get("name"))


def _tell_all(trace: RecordedRun, tell: Callable[[str, dict[str, object]], None]) -> int:
    count = 0
    streams = [_events(trace, event) for event in sorted(_SELECTS)]
    for (_, event), fields in heapq.merge(*streams, key=lambda each: each[0]):
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
