"""A run in another thread that can be held and inspected in any cycle."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from signal import SIGINT
from typing import TYPE_CHECKING, Annotated, Final, Protocol, Self
from weakref import WeakSet

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked, refuse
from fabric.graph.arguments.keywords import taking
from fabric.graph.wiring.program import Program
from fabric.messages.telling.errors import ConfigurationError, FabricError
from fabric.messages.telling.place import calling_place
from fabric.messages.telling.users_code import Interrupted
from fabric.messages.telling.wording import counted
from fabric.runs.options import Settings
from fabric.runs.simulation import simulated
from fabric.timing.machine.terminations import free_ones, handling
from fabric.timing.stepping.stepper import (
    FINISH,
    AtCycle,
    AtElement,
    AtNext,
    Goal,
    Stepper,
    channel_number,
    element_goal,
    unit_number,
)

if TYPE_CHECKING:
    from types import FrameType

    from fabric.runs.report import Report
    from fabric.timing.machine.machine import Machine
    from fabric.timing.state.run_state import ChannelState, RunState, UnitState
    from fabric.timing.stepping.ledger import Held


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
        # Ctrl-C: the thread, which may have started, gets no other goal.
        stepper.ask(None)
        raise


class SteppedRun:
    """A run that is held in a cycle; ``open_run`` makes it.

    It is held in cycle 0 first. In cycle C everything with a stamp up to C has happened and nothing
    later, whatever the units have done ahead of it: the state is the same however one came there,
    under every schedule, and that of ``state_in`` of a recorded run but for what only the future
    tells. Holding a run changes none of its cycles.

    Attributes:
        report: of the run, once it is finished.
    """

    def __init__(self, program: Program, stepper: Stepper, thread: RunThread) -> None:
        self.report: Report | None = None
        self._program: Final = program
        self._stepper: Final = stepper
        self._thread: Final = thread
        self._closed = False
        self._using: Final = threading.Lock()
        # A run without references does not wait forever.
        self._forgotten: Final = weakref.finalize(self, stepper.ask, None)
        self._forgotten.atexit = False
        close_at_exit(self)
        self._go("open_run()", AtCycle(0))

    def __enter__(self) -> Self:
        """Return the run."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the run."""
        self.close()

    def __repr__(self) -> str:
        """Name, cycle and what can be done with it."""
        how = "held"
        if self._closed:
            how = "closed"
        elif self.over:
            how = "over"
        return f"<run of {self._program.name!r}, {how} at cycle {self.cycle:,}>"

    @property
    def cycle(self) -> int:
        """The cycle in which it is held."""
        return self._stepper.cycle

    @property
    def over(self) -> bool:
        """Whether nothing will happen any more: it has ended, is stuck, or has failed here."""
        return self._stepper.over

    @property
    def closed(self) -> bool:
        """Whether it was abandoned before its end, and can neither go on nor be looked at."""
        return self._closed

    @property
    def state(self) -> RunState:
        """What units, channels and memories are and have done in the cycle it is held in."""
        self._check_open("state")
        return self._stepper.state()

    def unit(self, name: str) -> UnitState:
        """Return the unit called ``name``: its clock, and what it waits for.

        Raises:
            ConfigurationError: there is none.
        """
        return self.state.units[unit_number(self._machine, name)]

    def channel(self, name: str) -> ChannelState:
        """Return the channel that ``--depth`` calls ``name``, ``OPERATOR.INPUT``, or a report does.

        Raises:
            ConfigurationError: there is none.
        """
        return self.state.channels[channel_number(self._machine, name)]

    def held(self, channel: str) -> tuple[Held, ...]:
        """Return the elements that a channel holds, oldest first: values, stops and stamps.

        Tiles have data in functional mode; nobody may write to it.

        Raises:
            ConfigurationError: there is no such channel.
        """
        self._check_open("held()")
        return tuple(self._stepper.held(channel_number(self._machine, channel)))

    @checked
    def until(
        self,
        *,
        cycle: Annotated[int, Bounds(0)] | None = None,
        unit: str | None = None,
        element: Annotated[int, Bounds(1)] | None = None,
    ) -> Self:
        """Go on to a cycle, or to an element of a unit, and return the run.

        Where the run is over before ``cycle``, it is held in its last one.

        Args:
            cycle: where to hold; this one or a later one.
            unit: a name, together with ``element``; ``matmul_1.1`` for another input than the
                first.
            element: hold in the cycle in which the unit takes so many values from that input, as
                errors count them; sends them, where it has no input.

        Raises:
            ConfigurationError: neither or both are given, the cycle is past, there is no such unit,
                the unit has had the element before, or the run is closed.
            FabricError: the run is over, and the element has not come.
            KeyboardInterrupt: by Ctrl-C; the run is held where it then was.
        """
        if (cycle is None) == (unit is None) or (unit is None) != (element is None):
            refuse(
                "until() is given neither a cycle nor an element, or both: "
                "expected until(cycle=...) or until(unit=..., element=...)",
                ConfigurationError,
            )
        if cycle is not None:
            if cycle < self.cycle:
                refuse(
                    f"until: cycle {cycle:,} is past: expected one from {self.cycle:,} on, where "
                    "the run is held; open it again to go back",
                    ConfigurationError,
                )
            self._go("until()", AtCycle(cycle))
            return self
        assert unit is not None
        assert element is not None
        goal = element_goal(self._machine, unit, element)
        had = self._had(goal)
        if had >= element:
            what = "sent" if goal.sent else "taken"
            refuse(
                f"until: {unit} has {what} {counted(had, 'element')} by cycle {self.cycle:,}: "
                f"expected an element after number {had:,}",
                ConfigurationError,
            )
        self._go("until()", goal)
        had = self._had(goal)
        if self.over and had < element:
            what = "sent" if goal.sent else "taken"
            refuse(
                f"until: element {element:,} of {unit} does not come: the run is over at cycle "
                f"{self.cycle:,}, and it has {what} {had:,}",
                FabricError,
            )
        return self

    @checked
    def step(self, count: Annotated[int, Bounds(1)] = 1) -> Self:
        """Go on to the next cycle in which something moves, ``count`` times; return the run.

        That is: an element is sent or dequeued, or the off-chip memory answers. Cycle by cycle one
        goes with ``until(cycle=run.cycle + 1)``.
        """
        for _ in range(count):
            if self.over:
                break
            self._go("step()", AtNext())
        return self

    def finish(self) -> Report:
        """Go on to the end and return the report, that of ``simulate`` but for its seconds."""
        if self.report is None:
            with self._in_use("finish()"):
                self._finish()
            self._ended()
        assert self.report is not None
        return self.report

    def close(self) -> None:
        """Abandon what is left of the run; one that is finished can still be looked at."""
        if self._closed:
            return
        if self.report is None:
            self._closed = True
            self._stepper.ask(None)
            self._forgotten.detach()
            self._thread.end(self._stepper.interrupt)

    def _finish(self) -> None:
        """Run to the end; Ctrl-C interrupts it as in ``simulate``."""
        stepper, thread = self._stepper, self._thread
        if thread.ended:
            return
        try:
            stepper.ask(FINISH)
            stepper.wait()
        except KeyboardInterrupt:
            stepper.ask(None)
            thread.end(stepper.interrupt)
            if not thread.ended:
                self._closed = True
                raise

    def _go(self, what: str, goal: Goal) -> None:
        with self._in_use(what):
            if self.over:
                return
            if not self._thread.ended:
                self._wait(goal)
        # Another thread may have closed it meanwhile.
        self._check_open(what)
        if self._thread.ended:
            self._ended()

    def _wait(self, goal: Goal) -> None:
        """Run until held; Ctrl-C holds the run soon, a second one abandons it."""
        stepper = self._stepper
        stepper.pausing = False
        presses = 0

        def press(_number: int, _frame: FrameType | None) -> None:
            nonlocal presses
            presses += 1
            stepper.pausing = True
            if presses > 1:
                raise KeyboardInterrupt

        try:
            with handling(free_ones((SIGINT,)), press):
                stepper.ask(goal)
                stepper.wait()
        except KeyboardInterrupt:
            self.close()
            raise
        if presses:
            raise KeyboardInterrupt

    def _ended(self) -> None:
        self._forgotten.detach()
        self.report = self._thread.result()
        self._stepper.end()

    @contextmanager
    def _in_use(self, what: str) -> Iterator[None]:
        """Lock an open run for one thread."""
        self._check_open(what)
        with self._using:
            yield

    def _check_open(self, what: str) -> None:
        of = f"{what} of the run of {self._program.name!r}"
        if self._closed:
            refuse(
                f"{of}, which is closed: expected it before close(), or inside of its `with`",
                ConfigurationError,
            )
        if self._using.locked():
            refuse(f"{of} while it goes on: expected one call after the other", ConfigurationError)

    @property
    def _machine(self) -> Machine:
        machine = self._stepper.machine
        assert machine is not None
        return machine

    def _had(self, goal: AtElement) -> int:
        """Return how many values a unit has taken, or sent, where ``goal`` counts them."""
        channel = self.state.channels[goal.channel]
        return channel.sent if goal.sent else channel.taken - channel.left_over


_GRACE_SECONDS: Final = 0.4
_PATIENCE_SECONDS: Final = 1.0
_MOST_ALARMS: Final = 3
"""How often a user's code may catch the interrupt and go on, and how soon the next comes."""


class _Closed(Protocol):
    def close(self) -> None: ...


_RUNS: Final[WeakSet[_Closed]] = WeakSet()
"""Those that somebody has."""


def close_at_exit(run: _Closed) -> None:
    """Let ``run`` end before the interpreter takes away what its thread needs."""
    _RUNS.add(run)
    _register()


@cache
def _register() -> None:
    # Later handlers run first: folders of reports still exist.
    atexit.register(_close_all)


def _close_all() -> None:
    for run in list(_RUNS):
        run.close()


class RunThread:
    """Runs a program, and passes its exceptions on; ``ended`` also if it could not begin."""

    def __init__(self, run: Callable[[], Report], at_end: Callable[[], object]) -> None:
        self.ended = False
        self._run: Final = run
        self._at_end: Final = at_end
        self._report: Report | None = None
        self._error: BaseException | None = None
        self._thread: Final = threading.Thread(target=self._main, name="run", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        try:
            self._report = self._run()
        except BaseException as error:  # noqa: BLE001 - raised where somebody waits for it
            self._error = error
        self.ended = True
        self._at_end()

    def result(self) -> Report:
        """Return the report, or raise what was raised instead."""
        if self._error is not None:
            raise self._error
        assert self._report is not None
        return self._report

    def end(self, interrupt: Callable[[], bool]) -> None:
        """Wait until the run has ended; call ``interrupt`` for code that computes on.

        Users' code that cannot be interrupted ends with the process.
        """
        self._thread.join(_GRACE_SECONDS)
        for alarm in (False, *[True] * _MOST_ALARMS):
            if not interrupt():
                self._thread.join()
                return
            if alarm:
                # As a signal does in the main thread.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(Interrupted)
                )
            self._thread.join(_PATIENCE_SECONDS if alarm else _GRACE_SECONDS)
