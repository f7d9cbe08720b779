"""One run of a program: its machine, its operators as trio tasks, its log and its trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from fabric.deadlock.livelock import LivelockWatch
from fabric.machine.companion import Companion
from fabric.machine.ending import Ending
from fabric.machine.interrupts import Interrupts
from fabric.machine.machine import Machine
from fabric.machine.runner import Runner
from fabric.machine.state_of import shutdown_cycles_of, state_of
from fabric.machine.watchdog import watched
from fabric.runs import accounting
from fabric.runs.runlog import HEARTBEAT_CYCLES, RunLog
from fabric.telling.plain import JsonObject
from fabric.wiring.elaborate import Plan, elaborate
from fabric.wiring.program import Program

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.engine.hop import Hop
    from fabric.engine.observer import Observer
    from fabric.runs.counters import UnitCounters
    from fabric.state.run_state import RunState
    from fabric.terminal.progress import Snapshot
    from fabric.trace.recording.options import TraceOptions
    from fabric.trace.recording.recorder import Recorder

__all__ = ["Execution", "Progress", "Settings"]


class Progress(Protocol):
    """Shows a run while it goes on."""

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show snapshots until cancelled."""


class Settings(NamedTuple):
    """How a program is run.

    Attributes:
        functional: tiles have data.
        depths: of single channels, by ``consumer.input``.
        hops: likewise.
        progress: shows the run while it goes on.
        livelock_cycles: how long nothing has to get done before the run is given up.
        trace: what to record, if anything.
        observers: who watches besides.
        compiles: operators go on without tasks of their own where that is possible.
        repeats: inputs that it is given, one after the other.
    """

    functional: bool
    depths: dict[str, int]
    hops: dict[str, Hop]
    progress: Progress | None
    livelock_cycles: int
    trace: TraceOptions | None
    observers: tuple[Observer, ...] = ()
    compiles: bool = True
    repeats: int = 1

    def recorder(self) -> Recorder | None:
        """Return a new recorder where the run is traced."""
        if self.trace is None:
            return None
        from fabric.trace.recording.recorder import Recorder

        return Recorder(self.trace)

    def deepened(self, explained: DeadlockReport) -> Settings:
        """Return the same with the depths that help."""
        depths = {depth.option: depth.after for depth in explained.remedy.depths}
        return self._replace(depths=self.depths | depths)


class Execution:
    """One run of a program, from cycle 0 to its end.

    Attributes:
        settings: how it is run.
        machine: what it runs on.
        watch: for livelocks.
        log: where its story goes; nowhere until it is set.
        wall_seconds: that it took.
        state: to which it came; once it has been executed.
        counters: of its units, in that state.
    """

    state: RunState
    counters: tuple[UnitCounters, ...]

    def __init__(
        self,
        program: Program,
        settings: Settings,
        say: Callable[[str], object] | None = None,
        plan: Plan | None = None,
    ) -> None:
        """Build the machine for ``program``; ``say``, by default on stderr, who does not end.

        ``plan`` is the program's, where it has been elaborated before.
        """
        self.settings: Final = settings
        self._say: Final = say or _say
        self._recorder = settings.recorder()
        self._plan: Final = plan or elaborate(program)
        self.log = RunLog(None, lambda _: None)
        self.wall_seconds = 0.0
        self._loops_logged: set[str] = set()
        self._interrupts = Interrupts()
        self._logged: set[int] = set()
        self._build(compiles=settings.compiles)

    def _build(self, *, compiles: bool) -> None:
        settings = self.settings
        recorded = () if self._recorder is None else (self._recorder.observer,)
        self._runner = Runner(
            self._plan,
            functional=settings.functional,
            depths=settings.depths,
            hops=settings.hops,
            capacity_bytes=self._plan.program.hardware.on_chip.capacity_bytes,
            on_heartbeat=self._beat,
            beat_cycles=HEARTBEAT_CYCLES,
            observers=(*recorded, *settings.observers),
            compiles=compiles,
            repeats=settings.repeats,
        )
        self.machine: Machine = self._runner.machine
        self.watch = LivelockWatch(self.machine, settings.livelock_cycles)

    def start_trace(
        self,
        folder: Path | None,
        name: str,
        head: Mapping[str, Any],
        tell: Callable[[str], object],
    ) -> None:
        """Begin the trace, where there is one, in a new folder ``name``."""
        if self._recorder is not None and folder is not None:
            machine = self.machine
            look = partial(state_of, machine)
            self._recorder.start(folder / name, machine.plan, look, self._served, head, tell)

    def _served(self, unit: int) -> int:
        """Return how many requests of a unit's burst under way the HBM has served."""
        memory = self.machine.off_chip
        return 0 if memory is None else memory.served(self.machine.units[unit])

    @property
    def signal(self) -> int:
        """What interrupted the run, where something did."""
        return self._interrupts.number

    def conclude_trace(self, status: Ending, verified: bool | None, priced: JsonObject) -> None:
        """Let the trace say of the run what its report says."""
        if self._recorder is not None:
            self._recorder.conclude(status, verified, priced)

    def execute(self) -> Ending:
        """Run to the end and return how it ended; the trace ends with it."""
        status = self._execute()
        if self._recorder is not None:
            completed = status == "completed"
            shutdown_cycles = shutdown_cycles_of(self.machine) if completed else None
            self._recorder.finish(status, self.state, shutdown_cycles)
        return status

    def _execute(self) -> Ending:
        start = time.perf_counter()
        interrupts = self._interrupts
        ending: Ending = "interrupted"
        with interrupts.handled():
            begun = self.log.place
            ending = self._run()
            if self.machine.gave_up and not interrupts.seen:
                # Tasks get as far, and say what is wrong.
                self.log.forget_since(begun)
                self._logged.clear()
                self._loops_logged.clear()
                self._build(compiles=False)
                ending = self._run()
        self.wall_seconds = time.perf_counter() - start
        self.state = state_of(self.machine)
        if ending == "completed" and self.machine.failures.first is not None:
            # A user's memory that does not say what it has counted.
            ending = "error"
        self.counters = accounting.unit_counters(self.state)
        self._log_finished(self.state, lambda: self.counters)
        return "interrupted" if interrupts.seen else ending

    def _run(self) -> Ending:
        runner = self._runner
        with watched(runner.runtime.watched, self._say):
            return runner.run_under(
                self._interrupts,
                lambda: "livelock" if self.watch.moving else None,
                beside=self._beside(),
            )

    def _beside(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Yield the tasks that go on as long as the operators do."""
        progress = self.settings.progress
        if progress is not None:
            yield lambda: progress.run(self._snapshot)
        if self._recorder is not None:
            yield self._recorder.run
        for each in self.settings.observers:
            if isinstance(each, Companion):
                each.attach(self.machine, self._interrupts.come)
                yield each.run

    def _beat(self) -> None:
        if not self.log.is_kept:
            return
        machine = self.machine
        state = state_of(machine)
        self._log_finished(state, lambda: accounting.unit_counters(state))
        self.log.event(
            "heartbeat",
            machine.clock.now,
            elements=state.elements,
            waiting=state.waiting,
        )
        # Most runs are over before the first heartbeat.
        from fabric.deadlock.waits import find_stuck

        for loop in find_stuck(state).cores:
            if loop[0].name not in self._loops_logged:
                self._loops_logged.update(unit.name for unit in loop)
                names = [unit.name for unit in loop]
                self.log.event("partial_deadlock", machine.clock.now, loop=names)

    def _log_finished(
        self, state: RunState, counters_of: Callable[[], tuple[UnitCounters, ...]]
    ) -> None:
        if not self.log.is_kept:
            return
        ended = [u for u in state.units if u.finished and u.number not in self._logged]
        if not ended:
            return
        self._logged.update(unit.number for unit in ended)
        counters = counters_of()
        self.log.operators_finished(
            [counters[unit.number] for unit in ended], [unit.cycle for unit in ended]
        )

    def _snapshot(self) -> Snapshot:
        from fabric.terminal.progress import Snapshot

        machine = self.machine
        machine.publish()
        waiting = machine.waiting
        finished = sum(unit.finished for unit in machine.units)
        return Snapshot(
            cycle=max(unit.now for unit in machine.units),
            elements=machine.elements,
            running=len(machine.units) - waiting - finished,
            waiting=waiting,
        )


def _say(text: str) -> None:
    print(f"fabric: {text}", file=sys.stderr)  # noqa: T201 - a notice
