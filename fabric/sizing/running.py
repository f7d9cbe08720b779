"""Runs of a program for its sizing: recorded ones, and ones of which only the cycles count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

from fabric.deadlock.document import DeadlockReport
from fabric.retiming.record import Record
from fabric.retiming.record_making import Recording
from fabric.runs.comparison import check_assumptions, measured_sizes
from fabric.runs.execution import Execution
from fabric.runs.explaining import explain
from fabric.runs.options import Options, Settings
from fabric.state.run_state import RunState
from fabric.symbolic.substitution import Substitution
from fabric.telling.errors import FabricError
from fabric.telling.users_code import Interrupted
from fabric.telling.wording import counted
from fabric.wiring.collector import only_young_garbage
from fabric.wiring.elaborate import Plan, elaborate
from fabric.wiring.program import Program

__all__ = ["UNBOUNDED", "Ran", "Stuck", "cycles_of", "recorded", "unbounded"]

UNBOUNDED: Final = 1 << 40
"""A depth that no run reaches."""

_AS_EVER: Final = Options()
"""Where nothing is asked for."""


class Ran(NamedTuple):
    """A run that completed.

    Attributes:
        record: of it.
        state: to which it came.
        cycles: that it took.
    """

    record: Record
    state: RunState
    cycles: int


class Stuck(FabricError):  # noqa: N818 - what it is, as Deadlock
    """A run that did not get to its end.

    Attributes:
        ending: how it ended.
        state: in which it stopped.
    """

    def __init__(self, run: Execution, ending: Literal["deadlock", "livelock"]) -> None:
        """Keep what says why."""
        state, repeats = run.state, run.repeats
        inputs = "" if repeats == 1 else f" with {counted(repeats, 'input')} one after the other"
        super().__init__(
            f"{state.program}: {ending} at cycle {state.stopped_cycle:,}{inputs}: expected it to "
            "complete with these depths"
        )
        self.ending: Final = ending
        self.state: Final = state
        self._run: Final = run

    @cached_property
    def explained(self) -> DeadlockReport:
        """Why it did not; no remedy is looked for."""
        return explain(self._run, self.ending)


def unbounded(program: Program) -> dict[str, int]:
    """Return depths, by option, with which no channel of ``program`` holds anybody up."""
    return {edge.key: UNBOUNDED for edge in elaborate(program).edges}


@only_young_garbage()
def recorded(
    program: Program,
    depths: Mapping[str, int],
    options: Options = _AS_EVER,
    *,
    repeats: int = 1,
) -> Ran:
    """Run ``program`` in timing mode, and record it.

    Args:
        program: wired.
        depths: of single channels, by ``consumer.input``, over those of ``options``.
        options: how to run it beside that.
        repeats: inputs, one after the other: each operator without inputs runs so often. What the
            program assumes of its streams is about one, and compared where it is given one.

    Raises:
        Stuck: it ended in a deadlock or a livelock.
        FabricError: it cannot be run, or failed.
        KeyboardInterrupt: it was interrupted.
    """
    plan = elaborate(program)
    recording = Recording(plan)
    run = _completed(plan, depths, options, repeats, recording)
    region = run.machine.region
    if region is not None and region.has_left:
        # Half of it is in a journal, half was told.
        recording = Recording(plan)
        run = _completed(plan, depths, options, repeats, recording, engine="tasks")
    machine, state = run.machine, run.state
    if repeats == 1:
        sizes = Substitution(measured_sizes(machine.plan, state).sizes)
        check_assumptions(machine.plan, state, machine.assumed, sizes)
    return Ran(recording.record(machine), state, state.cycles)


@only_young_garbage()
def cycles_of(
    program: Program, depths: Mapping[str, int], repeats: int = 1, options: Options = _AS_EVER
) -> int | None:
    """Return the cycles of a run as ``recorded``'s, None where it ends in a deadlock; quicker.

    Raises:
        FabricError: it cannot be run, or failed.
        KeyboardInterrupt: it was interrupted.
    """
    try:
        return _completed(elaborate(program), depths, options, repeats).state.cycles
    except Stuck:
        return None


def _completed(
    plan: Plan,
    depths: Mapping[str, int],
    options: Options,
    repeats: int,
    recording: Recording | None = None,
    engine: Literal["compiled", "tasks"] = "compiled",
) -> Execution:
    """Return a run that has completed, watched where there is a ``recording``."""
    settings = replace(
        Settings.of(options),
        mode="timing",
        depths={**(options.depths or {}), **depths},
        on_deadlock="describe",
        observers=() if recording is None else (recording,),
        engine=engine,
    )
    run = Execution(plan.program, settings, plan, repeats)
    ending = run.execute()
    if ending == "interrupted":
        raise Interrupted(run.signal)
    failure = run.machine.failures.first
    if failure is not None:
        raise failure
    if ending in ("deadlock", "livelock"):
        raise Stuck(run, ending)
    return run
