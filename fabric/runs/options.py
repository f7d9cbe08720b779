"""How a program is run: options, stated once for all that run programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

# Any: whatever build() of a program takes.
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self

from typing_extensions import override

from fabric.arguments.annotated import check_of
from fabric.arguments.checks import Bounds
from fabric.arguments.described import Described, refuse
from fabric.deadlock.livelock import LIVELOCK_CYCLES
from fabric.engine.hop import Hop
from fabric.engine.observer import Observer
from fabric.telling.errors import ConfigurationError, FabricError
from fabric.telling.events import Log
from fabric.telling.wording import found_text
from fabric.trace.recording.options import TraceOptions

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.terminal.progress import Snapshot
    from fabric.wiring.program import Program

__all__ = ["Mode", "OnDeadlock", "Options", "Progress", "Settings"]

Mode = Literal["timing", "functional"]
OnDeadlock = Literal["report", "grow", "describe"]


class Progress(Protocol):
    """Shows a run while it goes on."""

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show snapshots until cancelled."""


@dataclass(frozen=True, kw_only=True)
class Options(Described):
    """All that a run's numbers depend on beside its program, with that program's hardware.

    Whoever runs programs takes these, and hands them on as one value: then none is forgotten.

    Attributes:
        mode: ``timing`` or ``functional``; what the program states where None.
        exact: functional mode with all floats in float64, whatever types the program declares:
            sizes, traffic and cycles stay those of the types, and expectations are compared at
            1e-9. Wiring is then told apart from rounding. A run that completes is run once more
            in the types that the program declares, unwatched, to say what these cost:
            ``report.signal_to_noise_db``.
        depths: of single channels, by ``consumer.input``; elsewhere as the program says.
        hops: latencies of single channels, by ``consumer.input``; one cycle each way elsewhere.
        placement: a TOML file that says where on the mesh of ``[network]`` each unit is; units are
            put there row by row where None.
        on_deadlock: ``report`` it, with depths that help: to find them the program is run again in
            timing mode, users' operators with it; ``grow``: and once more with those; or
            ``describe`` it, without looking for any: nothing is run again.
        livelock_cycles: how long nothing has to get done before the run is given up.
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
        """Refuse what cannot be run so.

        Raises:
            ConfigurationError: the run is to be exact and without data.
        """
        super().__post_init__()
        if self.exact and self.mode == "timing":
            refuse(
                "exact: a run in timing mode has no data to be exact: expected functional mode",
                ConfigurationError,
            )

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return these options alone, or with what else this class has by default."""
        return cls(**{each.name: getattr(options, each.name) for each in fields(Options)})

    def mode_of(self, program: Program) -> Mode:
        """Return the mode in which ``program`` runs."""
        with_data = self.exact or (self.mode or program.mode) == "functional"
        return "functional" if with_data else "timing"


@dataclass(frozen=True, kw_only=True)
class Settings(Options):
    """The options of one run, who watches it, and where it is written.

    Attributes:
        trace: ``events`` records every transfer and wait, TraceOptions a part of them, ``counters``
            (as None) none; ``report.trace()`` opens what was recorded. It is in the run's folder,
            or without ``log_dir`` in a temporary one that is removed with the report; a run with
            other depths is recorded beside it, in ``trace-grown``.
        observers: are told of transfers, bursts and allocations; of runs to find a remedy they are
            not, of one with other depths they are.
        log_dir: parent of the run's own folder; None writes nothing that stays.
        log: a logger of structlog, or a list of its processors, which gets every event of the run,
            bound to its name and in the order of cycles; what processors make of it goes to
            standard error. The run goes on without one that raises, and the report says so.
        notify: told which operators do not end, what takes its time after a run that stopped, and
            at once what of the log or the trace cannot be written, or told to ``log``. Standard
            error has the first where None.
        progress: shows the run while it goes on.
        parameters: for the report.
        program_file: for the report.
        engine: ``compiled``: operators of whose behaviour in time a table can be made go on without
            a task of their own, in timing mode and where no observer watches; ``tasks``: none do.
            What comes out is the same. Where a run comes to what only tasks can do, an error
            mostly, its operators go on as tasks from where they stand: nothing is started a second
            time. But a traced run begins again as one of tasks; it is one from the start where a
            user's code is in it, or a part is traced.
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
        """Refuse what cannot be run so.

        Raises:
            ConfigurationError: the folder has no name, or an observer is none.
        """
        super().__post_init__()
        if self.log_dir == "":
            refuse("log_dir is '': expected a folder, or None to write nothing", ConfigurationError)
        observers: object = self.observers
        if not (
            isinstance(observers, Sequence)
            and all(isinstance(each, Observer) for each in observers)
        ):
            refuse(
                f"observers is {found_text(observers)}: expected a list of Observers",
                ConfigurationError,
            )

    @property
    def traced(self) -> TraceOptions | None:
        """What is recorded."""
        if isinstance(self.trace, TraceOptions):
            return self.trace
        return TraceOptions() if self.trace == "events" else None

    def as_declared(self) -> Settings:
        """Return the same in the types that the program declares, which nobody watches."""
        return replace(
            self, mode="functional", exact=False, progress=None, trace=None, observers=()
        )

    def deepened(self, explained: DeadlockReport) -> Settings:
        """Return the same with the depths that help."""
        found = {depth.option: depth.after for depth in explained.remedy.depths}
        return replace(self, depths={**(self.depths or {}), **found})
