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
    """Start a run and hold it in cycle 0, so that you can look at it and let it go on.

    As in::

        with fabric.open_run(program) as run:
            run.until(unit="matmul_1", element=3)
            print(run.unit("matmul_1"), run.held("matmul_1.0"))
            report = run.finish()

    The run has its own thread, so you can open it anywhere: in a notebook, or beside other runs. An
    operator that fails ends the run there, and the report says why. ``log``, ``notify``,
    ``progress`` and the ``observers`` are called in the run's thread, the observers ahead of the
    cycle in which it is held. If the program runs a second time (``exact``, or with other depths),
    that run is not held.

    Args:
        program: a wired program.
        settings: the settings of the run, as keywords.

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
