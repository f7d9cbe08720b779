"""Runs operators as tasks of trio's, and whatever goes on beside them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator

import trio

from fabric.machine.foreign import Foreign
from fabric.machine.runtime import Runtime
from fabric.machine.unawaited import unawaited

__all__ = ["run_in_trio"]


def run_in_trio(
    runtime: Runtime,
    on_start: Callable[[], object],
    beside: Iterable[Callable[[], Awaitable[object]]],
) -> None:
    """Run the operators of ``runtime`` to the end.

    Args:
        runtime: see above.
        on_start: called first inside of trio.
        beside: tasks that go on as long as the operators do.
    """

    async def main() -> None:
        on_start()
        async with trio.open_nursery() as host:
            for task in beside:
                host.start_soon(task)
            await runtime.run()
            host.cancel_scope.cancel()

    foreign = Foreign(runtime)
    with _no_wakeups(), unawaited(foreign.dropped):
        trio.run(
            main,
            clock=foreign.clock,
            instruments=[foreign.tasks],
            restrict_keyboard_interrupt_to_checkpoints=True,
        )


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
