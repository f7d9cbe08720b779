"""One run of a program on its own machine, for users and for trial remedies."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import trio

from fabric.timing.engine.clock import VirtualClock
from fabric.timing.guards.tasks import unawaited
from fabric.timing.machine.assembly import Setup, assemble
from fabric.timing.machine.runtime import Runtime
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.timing.machine.interrupts import Interrupts


@contextlib.contextmanager
def _no_wakeups() -> Iterator[None]:
    """Hide the signal wakeup descriptor of another event loop of this thread, such as a notebook's.

    Trio would warn of a collision.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        if before != -1:
            signal.set_wakeup_fd(before)


class Runner:
    """Runs a program once."""

    def __init__(
        self,
        setup: Setup,
        *,
        on_heartbeat: Callable[[], None],
        beat_cycles: int,
        released: Callable[[], bool] = lambda: False,
    ) -> None:
        """Build the machine.

        ``on_heartbeat`` is called about every ``beat_cycles``. ``released`` is called if no unit
        can run, and returns whether it has changed that.

        Raises:
            ConfigurationError: see ``assemble``.
        """
        clock = VirtualClock(self._rest, on_heartbeat, beat_cycles)
        self.machine: Final = assemble(setup, clock)
        self.runtime: Final = Runtime(self.machine)
        self._released: Final = released

    def run(
        self,
        given_up: Callable[[], Ending | None],
        *,
        on_start: Callable[[], object] = lambda: None,
        beside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> Ending:
        """Run to the end and return how it ended.

        ``given_up`` returns the ending of an abandoned run, ``on_start`` is called inside trio, and
        tasks ``beside`` run with the operators.
        """
        with _no_wakeups(), unawaited(self.runtime.dropped):
            trio.run(self._main, on_start, beside, restrict_keyboard_interrupt_to_checkpoints=True)
        machine = self.machine
        machine.publish()
        if machine.region is not None:
            machine.region.close()
        if machine.failures.first is not None:
            return "error"
        if all(unit.finished for unit in machine.units):
            return "completed"
        if machine.failures.circling:
            return "livelock"
        return given_up() or "deadlock"

    def run_under(
        self,
        interrupts: Interrupts,
        given_up: Callable[[], Ending | None],
        *,
        beside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> Ending:
        """Run like ``run``, and end at the signals of ``interrupts``."""
        runtime = self.runtime
        return self.run(
            given_up,
            on_start=lambda: interrupts.ends(runtime.cancel, runtime.abandon),
            beside=beside,
        )

    async def _main(
        self, on_start: Callable[[], object], beside: Iterable[Callable[[], Awaitable[object]]]
    ) -> None:
        on_start()
        async with trio.open_nursery() as host:
            for task in beside:
                host.start_soon(task)
            await self.runtime.run()
            host.cancel_scope.cancel()

    def _rest(self) -> None:
        if not self._released():
            self.runtime.stop()
