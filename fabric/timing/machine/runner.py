"""One run of a program on a machine of its own, from cycle 0 to its end.

Runs of a user and runs in which a remedy is tried both go here.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import trio

from fabric.timing.engine.clock import VirtualClock
from fabric.timing.machine.assembly import assemble
from fabric.timing.machine.runtime import Foreign, Runtime
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.graph.hardware.latency import Hop
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.observer import Observer
    from fabric.timing.machine.interrupts import Interrupts


@contextlib.contextmanager
def _no_wakeups() -> Iterator[None]:
    """Keep from trio where another event loop of this thread, a notebook's, is told of signals.

    It would take that for a collision, and warn of it; that loop does not go on meanwhile.
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
    """Runs a program once.

    Attributes:
        machine: what it runs on.
        runtime: runs the machine's operators.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        functional: bool,
        depths: Mapping[str, int],
        hops: Mapping[str, Hop],
        capacity_bytes: int | None,
        on_heartbeat: Callable[[], None],
        beat_cycles: int,
        released: Callable[[], bool] = lambda: False,
        observers: Sequence[Observer] = (),
        compiles: bool = False,
        repeats: int = 1,
    ) -> None:
        """Build the machine.

        Args:
            plan: the program.
            functional: tiles have data.
            depths: of single channels, by ``consumer.input``.
            hops: likewise.
            capacity_bytes: of the on-chip memory; None for no limit.
            on_heartbeat: called about every ``beat_cycles``.
            beat_cycles: between two heartbeats.
            released: called when nothing can happen any more; says whether it has changed that.
            observers: watch the run; one that nobody watches costs nothing.
            compiles: see ``assemble``.
            repeats: likewise.

        Raises:
            ConfigurationError: a depth or a hop names no channel, or a depth is below 1.
        """
        self.machine: Final = assemble(
            plan,
            VirtualClock(self._rest, on_heartbeat, beat_cycles),
            functional=functional,
            depths=depths,
            hops=hops,
            capacity_bytes=capacity_bytes,
            observers=observers,
            compiles=compiles,
            repeats=repeats,
        )
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

        Args:
            given_up: as what the run was given up, where it was; None where it was not.
            on_start: called first inside of trio.
            beside: tasks that go on as long as the operators do.
        """
        foreign = Foreign(self.runtime)
        with _no_wakeups(), unawaited(foreign.dropped):
            trio.run(
                self._main,
                on_start,
                beside,
                clock=foreign.clock,
                instruments=[foreign.tasks],
                restrict_keyboard_interrupt_to_checkpoints=True,
            )
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
        """Run, as ``run`` does, and end when ``interrupts`` that are handled say so."""
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


_MESSAGE: Final = r"coroutine '(.*)' was never awaited"
_lock: Final = threading.Lock()
_told: Final[dict[int, Callable[[str], bool]]] = {}
"""By thread, whom to tell; runs in several threads share one hook, as Python has only one."""


@contextlib.contextmanager
def unawaited(tell: Callable[[str], bool]) -> Iterator[None]:
    """Call ``tell`` with the name of each coroutine that this thread drops without awaiting it.

    It says whether it took note; where it did not, the warning is shown as ever.
    """
    thread = threading.get_ident()
    with _lock:
        # Each run looks: since another began, warnings may be filtered and shown otherwise.
        warnings.filterwarnings("always", _MESSAGE, RuntimeWarning)
        if not isinstance(warnings.showwarning, _Hook):
            warnings.showwarning = _Hook(warnings.showwarning)
        _told[thread] = tell
    try:
        yield
    finally:
        with _lock:
            del _told[thread]
            if not _told and isinstance(hook := warnings.showwarning, _Hook):
                warnings.showwarning = hook.shown


class _Hook:
    """Tells runs of what they dropped, and shows all else by ``shown``."""

    def __init__(self, shown: Callable[..., None]) -> None:
        self.shown: Final = shown

    def __call__(
        self, message: Warning | str, category: type[Warning], *where: Any, **named: Any
    ) -> None:
        tell = _told.get(threading.get_ident())
        found = re.match(_MESSAGE, str(message))
        if found is None or tell is None or not tell(found[1]):
            self.shown(message, category, *where, **named)
