"""The options of a run, stated once for all callers that run programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

# Any: arguments of build().
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self

from typing_extensions import override

from fabric.analysis.deadlock.livelock import LIVELOCK_CYCLES
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.arguments.checks import Bounds, check_of
from fabric.graph.arguments.described import Described, refuse
from fabric.graph.hardware.latency import Hop
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.events import Log
from fabric.messages.text import found_text
from fabric.timing.engine.observer import Observer

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program
    from fabric.messages.progress import Snapshot

Mode = Literal["timing", "functional"]
OnDeadlock = Literal["report", "grow", "describe"]


class Progress(Protocol):
    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show snapshots until cancelled."""


@dataclass(frozen=True, kw_only=True)
class Options(Described):
    """The options that decide the numbers of a run, apart from the program and its hardware.

    Attributes:
        mode: ``timing`` or ``functional``; by default the mode that the program states.
        exact: run in functional mode and keep all floats in float64. Sizes, traffic and cycles
            are as in the declared types. Outputs are compared at 1e-9, so that a difference
            means wrong wiring and not rounding. If the run completes, the program runs once more
            in the declared types, without observers and trace, for
            ``report.signal_to_noise_db``.
        depths: of single channels, by ``consumer.input``. Other depths are the program's.
        hops: latencies of single channels, by ``consumer.input``. Other latencies are one cycle
            each way.
        placement: a TOML file with the site of each unit on the mesh of ``[network]``; by default
            units are placed row by row.
        on_deadlock: ``report``: search for depths that help; the search runs the program again in
            timing mode, with users' operators. ``grow``: also run the program with these depths.
            ``describe``: report the deadlock without further runs.
        livelock_cycles: the run ends as a livelock after this number of cycles without progress.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    mode: Annotated[str, check_of(Mode)] | None = None
    exact: bool = False
    depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None
    hops: Mapping[str, Hop] | None = None
    placement: Path | str | None = None
    on_deadlock: OnDeadlock = "report"
    livelock_cycles: Annotated[int, Bounds(10)] = LIVELOCK_CYCLES

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exact and self.mode == "timing":
            refuse(
                "exact: a run in timing mode has no data: expected functional mode",
                ConfigurationError,
            )

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return ``options`` as this class, with defaults for its further fields."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(Options)})

    def mode_of(self, program: Program) -> Mode:
        with_data = self.exact or (self.mode or program.mode) == "functional"
        return "functional" if with_data else "timing"


@dataclass(frozen=True, kw_only=True)
class Settings(Options):
    """The options of one run, its observers, and the places of its files.

    Attributes:
        trace: ``events`` records every transfer and wait, TraceOptions a selection, and
            ``counters`` (the default) none. ``report.trace()`` opens the trace. It is in the run's
            folder, or without ``log_dir`` in a temporary folder that is removed with the report. A
            second run with other depths is recorded in the same folder, in ``trace-grown``.
        observers: receive transfers, bursts and allocations, also of a run with other depths, but
            not of runs that search for a remedy.
        log_dir: the folder in which the run makes its own folder; None to keep no files.
        log: a structlog logger, or a list of its processors. It receives every event of the run,
            bound to the run's name, in the order of cycles. The output of processors is written to
            standard error. If the log raises, the run continues without it, and the report has a
            warning.
        notify: called with a sentence if an operator does not end, if a search for a remedy begins,
            or if a part of the log or the trace cannot be written. If it is None, only the sentence
            about an operator is written, to standard error.
        progress: shows the progress of the run.
        parameters, program_file: for the report.
        engine: ``compiled``: in timing mode without observers, an operator runs in a compiled loop
            if a table can describe its timing. ``tasks``: every operator runs as a task. Both give
            the same report. If the loop reaches a state that only tasks can execute, usually an
            error, the run begins again as tasks. A program runs as tasks from the start if a class
            of its operators, functions or memory, or of ``progress``, states ``effects = True``, or
            if the hardware limits the on-chip memory.
    """

    trace: TraceOptions | Literal["events", "counters"] | None = None
    observers: Sequence[Observer] = ()
    log_dir: Path | str | None = None
    log: Log | None = None
    notify: Callable[[str], object] | None = None
    progress: Progress | None = None
    parameters: Mapping[str, Any] | None = None
    program_file: str = ""
    engine: Literal["compiled", "tasks"] = "compiled"

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_dir == "":
            refuse("log_dir is '': expected a folder, or None to write nothing", ConfigurationError)
        observers: object = self.observers
        if not (
            isinstance(observers, Sequence)
            and all(isinstance(observer, Observer) for observer in observers)
        ):
            refuse(
                f"observers is {found_text(observers)}: expected a list of Observers",
                ConfigurationError,
            )

    @property
    def traced(self) -> TraceOptions | None:
        if isinstance(self.trace, TraceOptions):
            return self.trace
        return TraceOptions() if self.trace == "events" else None
