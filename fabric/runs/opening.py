"""``open_run``: a run that is held, looked at and let go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fabric.arguments.checks import Bounds
from fabric.arguments.described import checked
from fabric.deadlock.livelock import LIVELOCK_CYCLES
from fabric.engine.hop import Hop
from fabric.engine.observer import Observer
from fabric.runs.simulation import OnDeadlock, simulate
from fabric.runs.stepped import SteppedRun
from fabric.runs.thread import RunThread
from fabric.stepping.stepper import Stepper
from fabric.telling.errors import FabricError
from fabric.telling.place import calling_place
from fabric.trace.recording.options import TraceOptions
from fabric.wiring.program import Program

__all__ = ["open_run"]


@checked
def open_run(
    program: Program,
    *,
    mode: str | None = None,
    depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None,
    hops: Mapping[str, Hop] | None = None,
    log_dir: Path | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    program_file: str = "",
    on_deadlock: OnDeadlock = "report",
    livelock_cycles: Annotated[int, Bounds(10)] = LIVELOCK_CYCLES,
    trace: TraceOptions | Literal["events", "counters"] | None = None,
    notify: Callable[[str], object] | None = None,
    observers: Sequence[Observer] = (),
) -> SteppedRun:
    """Begin a run that is held in cycle 0, to be looked at and let go on.

    As in::

        with fabric.open_run(program) as run:
            run.until(unit="map_1", element=3)
            print(run.unit("map_1"), run.held("map_1.0"))
            report = run.finish()

    The run has a thread of its own: it may be opened anywhere, in a notebook, beside others. An
    operator that fails ends it where it does so; the report says why.

    Args:
        program: wired; as all others, see ``simulate``.
        mode: see there.
        depths: see there.
        hops: see there.
        log_dir: see there.
        parameters: see there.
        program_file: see there.
        on_deadlock: see there; what runs again with other depths is not held.
        livelock_cycles: see there.
        trace: see there.
        notify: see there; called in the run's thread.
        observers: see there; called in the run's thread, ahead of the cycle it is held in.

    Raises:
        FabricError: the program cannot be run at all.
    """
    stepper = Stepper()
    begin = partial(
        simulate,
        program,
        mode=mode,
        depths=depths,
        hops=hops,
        log_dir=log_dir,
        parameters=parameters,
        program_file=program_file,
        on_deadlock=on_deadlock,
        livelock_cycles=livelock_cycles,
        trace=trace,
        notify=notify,
        observers=(*observers, stepper),
        engine="tasks",
    )
    try:
        return SteppedRun(program, stepper, RunThread(begin, stepper.rest))
    except FabricError as error:
        if error.file == threading.__file__:
            error.file, error.line = calling_place()
        raise
    except BaseException:
        # Ctrl-C: nobody will ask the thread, which may have begun, for anything.
        stepper.ask(None)
        raise
