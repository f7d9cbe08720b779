"""One run of a program: its machine, its operators as trio tasks, its log and its trace."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from fabric.analysis.deadlock.livelock import LivelockWatch
from fabric.graph.values.error_tracking import tracking_errors
from fabric.graph.values.fit import exact_numbers
from fabric.graph.wiring.elaborate import Plan, elaborate
from fabric.graph.wiring.placing import placed
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError
from fabric.messages.output import tell
from fabric.messages.text import counted
from fabric.messages.users_code import first_of, raised
from fabric.runs import counters
from fabric.runs.expected_tiles import SentTiles
from fabric.runs.printing import results_of
from fabric.runs.run_log import HEARTBEAT_CYCLES, RunLog, log_waits
from fabric.timing.guards.tasks import watched
from fabric.timing.machine.assembly import Setup
from fabric.timing.machine.interrupts import Interrupts
from fabric.timing.machine.machine import (
    Companion,
    Machine,
    has_effects,
    state_of,
)
from fabric.timing.machine.runner import Runner
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.analysis.trace.recorder import Recorder
    from fabric.messages.progress import Snapshot
    from fabric.messages.text import JsonObject
    from fabric.runs.counters import UnitCounters
    from fabric.runs.options import Progress, Settings
    from fabric.runs.report import Report
    from fabric.timing.engine.log import Keeper
    from fabric.timing.state.run_state import RunState


class Execution:
    """One run of a program.

    Attributes:
        expected: keeps the tiles of expected streams.
        watch: detects livelocks.
        log: discards events until the caller replaces it.
        state, status, counters: set by ``execute``.
    """

    status: Ending
    state: RunState
    counters: tuple[UnitCounters, ...]

    def __init__(
        self,
        program: Program,
        settings: Settings,
        plan: Plan | None = None,
        repeats: int = 1,
        keepers: Sequence[Keeper] = (),
    ) -> None:
        self._keepers: Final = keepers
        self.settings: Final = settings
        self.functional: Final = settings.mode_of(program) == "functional"
        self.repeats: Final = repeats
        self._plan: Final = placed(plan or elaborate(program), settings.placement)
        check_site_memory(self._plan)
        self._recorder: Recorder | None = None
        if settings.traced is not None:
            from fabric.analysis.trace.recorder import Recorder

            self._recorder = Recorder(settings.traced)
        self.log = RunLog()
        self.wall_seconds = 0.0
        self.on_chip_bytes: tuple[int, ...] = ()
        self._interrupts = Interrupts()
        self.signal: int | None = None
        self._trace: tuple[Path, JsonObject, Callable[[str], object]] | None = None
        self._logged_ends: set[int] = set()
        self._logged_waits: set[tuple[int, ...]] = set()
        self._logged_cycle = 0
        self.expected = SentTiles(self._plan)
        effects = has_effects(self._plan, settings.progress)
        self._build(compiles=settings.engine == "compiled" and not effects)

    def _build(self, *, compiles: bool) -> None:
        settings = self.settings
        recorded = () if self._recorder is None else (self._recorder.spool,)
        expected = (self.expected,) if self.functional and self.expected.watches else ()
        setup = Setup(
            plan=self._plan,
            functional=self.functional,
            depths=settings.depths or {},
            hops=settings.hops or {},
            capacity_bytes=self._plan.program.hardware.on_chip.capacity_bytes,
            observers=(*settings.observers, *expected),
            keepers=(*recorded, *self._keepers),
            compiles=compiles,
            repeats=self.repeats,
        )
        self._runner = Runner(setup, on_heartbeat=self._log_heartbeat, beat_cycles=HEARTBEAT_CYCLES)
        self.machine: Machine = self._runner.machine
        self.watch = LivelockWatch(self.machine, settings.livelock_cycles)

    def start_trace(self, folder: Path, head: JsonObject, notify: Callable[[str], object]) -> None:
        """Start the trace, if the settings ask for it; ``notify`` receives failures to write."""
        self._trace = folder, head, notify
        self._start_recorder()

    def _start_recorder(self) -> None:
        if self._recorder is not None and self._trace is not None:
            folder, head, notify = self._trace
            self._recorder.start(folder, self.machine, head, notify)

    def conclude_trace(self, report: Report) -> None:
        if self._recorder is not None:
            results = results_of(report) | {"on_chip_bytes": self.on_chip_bytes}
            self._recorder.conclude(results)

    def execute(self) -> Ending:
        """Run to the end, finish the trace, and return the status."""
        start = time.perf_counter()
        interrupts = self._interrupts
        ending: Ending = "interrupted"
        with interrupts.handled():
            ending = self._run()
        self.wall_seconds = time.perf_counter() - start
        self.state = state_of(self.machine)
        if ending == "completed" and self.machine.failures.first is not None:
            # A user's memory failed to return its counters.
            ending = "error"
        self.counters = counters.unit_counters(self.state)
        self._log_ends(self.state, self.counters)
        if interrupts.seen:
            ending, self.signal = "interrupted", interrupts.number
        self.status = ending
        if self._recorder is not None:
            self._recorder.finish(ending, self.state)
        return ending

    def _run(self) -> Ending:
        ending = self._run_once()
        region = self.machine.region
        if region is not None and region.gave_up and not self._interrupts.seen:
            # All operators run again as tasks. The log does not repeat its events.
            if self._recorder is not None:
                self._recorder = self._recorder.restarted()
            self._build(compiles=False)
            self._start_recorder()
            ending = self._run_once()
        return ending

    def _run_once(self) -> Ending:
        runner = self._runner
        exact = exact_numbers(self.settings.exact)
        tracking = tracking_errors(self.functional and self.machine.plan.program.expects)
        notify = self.settings.notify or (lambda text: tell(f"fabric: {text}"))
        with exact, tracking, watched(runner.watched, notify):
            return runner.run(
                self._interrupts,
                lambda: "livelock" if self.watch.moving else None,
                beside=self._companions(),
            )

    def _companions(self) -> Iterator[Callable[[], Awaitable[None]]]:
        progress = self.settings.progress
        if progress is not None:
            yield lambda: self._show_progress(progress)
        if self._recorder is not None:
            yield self._recorder.run
        for observer in self.settings.observers:
            if isinstance(observer, Companion):
                observer.attach(self.machine, self._interrupts.come)
                yield observer.run

    async def _show_progress(self, progress: Progress) -> None:
        try:
            await progress.run(self._snapshot)
        except BaseException as error:
            if isinstance(error, trio.Cancelled) and trio.current_effective_deadline() == -math.inf:
                raise
            failure = raised(f"progress {type(progress).__name__}: run()", first_of(error))
            self.machine.failures.keep_at(self.machine.clock.now, failure)

    def _log_heartbeat(self) -> None:
        cycle = self.machine.clock.now
        if not self.log.is_kept or cycle <= self._logged_cycle:
            return
        self._logged_cycle = cycle
        state = state_of(self.machine)
        # Later ends are logged later, since the log is in the order of cycles.
        self._log_ends(state, counters.unit_counters(state), before=cycle)
        self.log.event("heartbeat", cycle, elements=state.elements, waiting=state.waiting)
        log_waits(self.log, state, cycle, self._logged_waits)

    def _log_ends(
        self, state: RunState, counters: tuple[UnitCounters, ...], before: int | None = None
    ) -> None:
        ended = [
            (unit.cycle, unit.number)
            for unit in state.units
            if unit.finished and unit.number not in self._logged_ends
            if before is None or unit.cycle < before
        ]
        for cycle, number in sorted(ended):
            self._logged_ends.add(number)
            self.log.operator_finished(cycle, counters[number])

    def _snapshot(self) -> Snapshot:
        from fabric.messages.progress import Snapshot

        machine = self.machine
        machine.publish()
        waiting = sum(unit.wait is not None for unit in machine.units)
        finished = sum(unit.finished for unit in machine.units)
        return Snapshot(
            cycle=max(unit.now for unit in machine.units),
            elements=machine.elements,
            running=len(machine.units) - waiting - finished,
            waiting=waiting,
        )


def check_site_memory(plan: Plan) -> None:
    """Refuse a plan that needs more on-chip memory on a site than the hardware has.

    Sizes that depend on data count as 0.
    """
    floor = plan.floor
    if floor is None or floor.mesh.site_bytes is None:
        return
    # Few hardware files state site_bytes.
    from fabric.analysis.symbolic.metrics import metrics_of
    from fabric.analysis.symbolic.substitution import Substitution

    operators = metrics_of(plan, Substitution({})).operators
    needs = [operator.costs.on_chip_bytes for operator in operators]
    for site, nodes in floor.units_at(plan.nodes):
        bytes_of = {node.name: needs[node.index] for node in nodes}
        stated = {name: need for name, need in bytes_of.items() if isinstance(need, int) and need}
        needed = sum(stated.values())
        if needed > floor.mesh.site_bytes:
            what = (
                f"{', '.join(stated)} at {[*site]}: together {counted(needed, 'byte')} of on-chip "
                f"memory: expected at most {floor.mesh.site_bytes:,}, as [network] site_bytes says"
            )
            if floor.stated is None:
                raise ConfigurationError(what)
            raise floor.stated.refuse(what, "units", next(iter(stated)))
