"""``open_run``: a run that is held, looked at and let go on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fabric.arguments.keywords import taking
from fabric.runs.options import Settings
from fabric.runs.simulation import simulated
from fabric.runs.stepped import SteppedRun
from fabric.runs.thread import RunThread
from fabric.stepping.stepper import Stepper
from fabric.telling.errors import FabricError
from fabric.telling.place import calling_place
from fabric.wiring.program import Program

__all__ = ["open_run"]


@taking(Settings, without={"engine": "each operator of a run that is held has a task"})
def open_run(program: Program, settings: Settings) -> SteppedRun:
    """Begin a run that is held in cycle 0, to be looked at and let go on.

    As in::

        with fabric.open_run(program) as run:
            run.until(unit="map_1", element=3)
            print(run.unit("map_1"), run.held("map_1.0"))
            report = run.finish()

    The run has a thread of its own: it may be opened anywhere, in a notebook, beside others. An
    operator that fails ends it where it does so; the report says why. In its thread are called
    ``log``, ``notify``, ``progress`` and the ``observers``, these ahead of the cycle it is held in.
    What runs again, ``exact`` or with other depths, is not held.

    Args:
        program: wired.
        settings: as keywords.

    Raises:
        FabricError: the program cannot be run at all.
    """
    stepper = Stepper()
    held = replace(settings, observers=(*settings.observers, stepper), engine="tasks")
    try:
        return SteppedRun(
            program, stepper, RunThread(partial(simulated, program, held), stepper.rest)
        )
    except FabricError as error:
        if error.file is None and not settings.program_file:  # it was refused in the run's thread
            error.file, error.line = calling_place()
        raise
    except BaseException:
        # Ctrl-C: nobody will ask the thread, which may have begun, for anything.
        stepper.ask(None)
        raise
