"""A run in another thread that can be held and inspected in any cycle."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache, partial
from signal import SIGINT
from typing import TYPE_CHECKING, Annotated, Final, Self
from weakref import WeakSet

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked, refuse
from fabric.graph.arguments.keywords import taking
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.place import calling_place
from fabric.messages.text import counted
from fabric.messages.users_code import Interrupted
from fabric.runs.options import Settings
from fabric.runs.simulation import simulated
from fabric.timing.machine.interrupts import GRACE_SECONDS, MOST_ALARMS, PATIENCE_SECONDS
from fabric.timing.machine.terminations import free_signals, handling
from fabric.timing.stepping.ledger import Ledger
from fabric.timing.stepping.stepper import (
    FINISH,
    AtElement,
    Goal,
    Stepper,
    channel_number,
    element_goal,
    unit_number,
)

if TYPE_CHECKING:
    from types import FrameType

    from fabric.runs.report import Report
    from fabric.timing.state.run_state import ChannelState, RunState, UnitState
    from fabric.timing.stepping.ledger import Held


@taking(Settings, without={"engine": "each operator of a run that is held has a task"})
def open_run(program: Program, settings: Settings) -> SteppedRun:
    """Start a run and hold it in cycle 0, to inspect it and to continue it in steps.

    For example::

        with fabric.open_run(program) as run:
            run.until(unit="matmul_1", element=3)
            print(run.unit("matmul_1"), run.held("matmul_1.0"))
            report = run.finish()

    The run has its own thread, so it can be opened in a notebook, or beside other runs. An operator
    that fails ends the run, and the report has the error. ``log``, ``notify``, ``progress`` and the
    ``observers`` are called in the run's thread. Observers receive events earlier than the run
    shows them. A second run of the program (``exact``, or with other depths) is not held.

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
        if error.file is None and not settings.program_file:  # refused in the run's thread
            error.file, error.line = calling_place()
        raise
    except BaseException:
        # After Ctrl-C the thread may have started. It ends, since it receives no goal.
        stepper.ask(None)
        raise


class SteppedRun(AbstractContextManager["SteppedRun"]):
    """A run that is held in a cycle, first in cycle 0; ``open_run`` makes it.

    The state in cycle C has all events with a stamp up to C and no later events, although units may
    have run ahead. It does not depend on the schedule or on the steps to this cycle. It equals
    ``state_in`` of a recorded run, except for values that depend on later cycles. Holding a run
    changes none of its cycles.

    Attributes:
        report: None until the run is finished.
        closed: whether the run was abandoned before its end; it can no longer be inspected.
    """

    def __init__(self, program: Program, stepper: Stepper, thread: RunThread) -> None:
        self.report: Report | None = None
        self._program: Final = program
        self._stepper: Final = stepper
        self._thread: Final = thread
        self.closed = False
        self._using: Final = threading.Lock()
        # If the last reference to the run is lost, its thread ends.
        self._forgotten: Final = weakref.finalize(self, stepper.ask, None)
        self._forgotten.atexit = False
        _RUNS.add(self)
        _close_at_exit()
        self._continue("open_run()", lambda _: 0)

    @override
    def __exit__(self, *_error: object) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        how = "closed" if self.closed else "over" if self.over else "held"
        return f"<run of {self._program.name!r}, {how} at cycle {self.cycle:,}>"

    @property
    def cycle(self) -> int:
        """The cycle in which the run is held."""
        return self._stepper.cycle

    @property
    def over(self) -> bool:
        """Whether no further event will happen: the run has ended, is stuck, or has failed."""
        return self._stepper.over

    @property
    def state(self) -> RunState:
        """The units, channels and memories in the cycle in which the run is held."""
        self._check_open("state")
        return self._stepper.state()

    def unit(self, name: str) -> UnitState:
        """Return the unit ``name``: its clock, its cycles, and its wait.

        Raises:
            ConfigurationError: unknown unit.
        """
        return self.state.units[unit_number(self._stepper.machine, name)]

    def channel(self, name: str) -> ChannelState:
        """Return the channel ``name``, ``OPERATOR.INPUT`` as in ``--depth`` or as in a report.

        Raises:
            ConfigurationError: unknown channel.
        """
        return self.state.channels[channel_number(self._stepper.machine, name)]

    def held(self, channel: str) -> tuple[Held, ...]:
        """Return the elements that a channel holds, oldest first: values, stops and stamps.

        In functional mode tiles have data, which must not be changed.

        Raises:
            ConfigurationError: unknown channel.
        """
        self._check_open("held()")
        return tuple(self._stepper.held(channel_number(self._stepper.machine, channel)))

    @checked
    def until(
        self,
        *,
        cycle: Annotated[int, Bounds(0)] | None = None,
        unit: str | None = None,
        element: Annotated[int, Bounds(1)] | None = None,
    ) -> Self:
        """Continue to a cycle, or to an element of a unit, and return the run.

        A run that ends before ``cycle`` is held in its last cycle.

        Args:
            cycle: the present cycle or a later one.
            unit: the name of a unit, for its first input; ``matmul_1.1`` for another input.
            element: hold in the cycle in which the unit takes its n-th value from that input, or
                sends its n-th value if it has no inputs. Messages of errors count values in the
                same way.

        Raises:
            ConfigurationError: neither or both are given, the cycle is past, the unit is unknown or
                has taken or sent the element before, or the run is closed.
            FabricError: the run is over before the element.
            KeyboardInterrupt: after Ctrl-C; the run is held in the cycle that it has reached.
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
                    f"until: cycle {cycle:,} is past: expected a cycle from {self.cycle:,} on, "
                    "since the run is held there; open it again to go back",
                    ConfigurationError,
                )
            self._continue("until()", lambda _: cycle)
            return self
        assert unit is not None
        assert element is not None
        goal = element_goal(self._stepper.machine, unit, element)
        had, what = self._values_so_far(goal), "sent" if goal.sent else "taken"
        if had >= element:
            refuse(
                f"until: {unit} has {what} {counted(had, 'element')} by cycle {self.cycle:,}: "
                f"expected an element after number {had:,}",
                ConfigurationError,
            )
        self._continue("until()", goal)
        had = self._values_so_far(goal)
        if self.over and had < element:
            refuse(
                f"until: {unit} has not {what} element {element:,}: the run is over at cycle "
                f"{self.cycle:,}, with {had:,} {what}",
                FabricError,
            )
        return self

    @checked
    def step(self, count: Annotated[int, Bounds(1)] = 1) -> Self:
        """Continue to the next cycle with an event, ``count`` times; return the run.

        Events are sends, dequeues and answers of the off-chip memory.
        ``until(cycle=run.cycle + 1)`` continues by one cycle.
        """
        for _ in range(count):
            if self.over:
                break
            self._continue("step()", Ledger.next_cycle)
        return self

    def finish(self) -> Report:
        """Continue to the end and return the report.

        Only ``wall_seconds`` in it depends on the steps.
        """
        if self.report is None:
            with self._in_use("finish()"):
                self._finish()
            self._take_report()
        assert self.report is not None
        return self.report

    def close(self) -> None:
        """Abandon the run unless it is finished; a finished run can still be inspected."""
        if not self.closed and self.report is None:
            self.closed = True
            self._stepper.ask(None)
            self._forgotten.detach()
            self._thread.end(self._stepper.interrupt)

    def _finish(self) -> None:
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
                self.closed = True
                raise

    def _continue(self, what: str, goal: Goal) -> None:
        with self._in_use(what):
            if self.over:
                return
            if not self._thread.ended:
                self._wait(goal)
        # Another thread may have closed the run meanwhile.
        self._check_open(what)
        if self._thread.ended:
            self._take_report()

    def _wait(self, goal: Goal) -> None:
        """Run until held. Ctrl-C holds the run soon; a second Ctrl-C abandons it."""
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
            with handling(free_signals((SIGINT,)), press):
                stepper.ask(goal)
                stepper.wait()
        except KeyboardInterrupt:
            self.close()
            raise
        if presses:
            raise KeyboardInterrupt

    def _take_report(self) -> None:
        self._forgotten.detach()
        self.report = self._thread.result()
        self._stepper.end()

    @contextmanager
    def _in_use(self, what: str) -> Iterator[None]:
        self._check_open(what)
        with self._using:
            yield

    def _check_open(self, what: str) -> None:
        of = f"{what} of the run of {self._program.name!r}"
        if self.closed:
            refuse(
                f"{of}, which is closed: expected a use before close(), or inside its `with`",
                ConfigurationError,
            )
        if self._using.locked():
            refuse(
                f"{of} while it continues: expected calls one after the other", ConfigurationError
            )

    def _values_so_far(self, goal: AtElement) -> int:
        """Return the number of values that a unit has taken, or sent if ``goal`` counts those."""
        channel = self.state.channels[goal.channel]
        return channel.sent if goal.sent else channel.taken - channel.left_over


_RUNS: Final[WeakSet[SteppedRun]] = WeakSet()


@cache
def _close_at_exit() -> None:
    """Let all runs end before the interpreter removes modules that their threads need."""

    def close_all() -> None:
        for run in list(_RUNS):
            run.close()

    # Handlers run in reverse order, so that the folders of reports still exist.
    atexit.register(close_all)


class RunThread:
    def __init__(self, run: Callable[[], Report], at_end: Callable[[], object]) -> None:
        self._outcome: Final[Future[Report]] = Future()
        self._thread: Final = threading.Thread(
            target=self._main, args=(run, at_end), name="run", daemon=True
        )
        self._thread.start()

    def _main(self, run: Callable[[], Report], at_end: Callable[[], object]) -> None:
        try:
            self._outcome.set_result(run())
        except BaseException as error:  # noqa: BLE001 - raised by ``result``
            self._outcome.set_exception(error)
        at_end()

    @property
    def ended(self) -> bool:
        """Whether the run has ended, or could not begin."""
        return self._outcome.done()

    def result(self) -> Report:
        return self._outcome.result()

    def end(self, interrupt: Callable[[], bool]) -> None:
        """Wait until the run has ended; call ``interrupt`` for code that does not stop.

        Users' code that cannot be interrupted ends with the process.
        """
        self._thread.join(GRACE_SECONDS)
        for alarm in (False, *[True] * MOST_ALARMS):
            if not interrupt():
                self._thread.join()
                return
            if alarm:
                # This raises the error like a signal in the main thread.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(Interrupted)
                )
            self._thread.join(PATIENCE_SECONDS if alarm else GRACE_SECONDS)
