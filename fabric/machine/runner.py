"""One run of a program on a machine of its own, from cycle 0 to its end.

Runs of a user and runs in which a remedy is tried both go here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fabric.engine.clock import VirtualClock
from fabric.machine.assembly import assemble
from fabric.machine.ending import Ending
from fabric.machine.runtime import Runtime

if TYPE_CHECKING:
    from fabric.engine.hop import Hop
    from fabric.engine.observer import Observer
    from fabric.wiring.elaborate import Plan

__all__ = ["Runner"]


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
        self._compiles: Final = compiles and not observers

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
            on_start: called first, inside of trio where the run needs it.
            beside: tasks that go on as long as the operators do.
        """
        tasks = [*beside]
        if tasks or not self._compiles or self.runtime.needs_tasks:
            from fabric.machine.in_trio import run_in_trio

            run_in_trio(self.runtime, on_start, tasks)
        else:
            on_start()
            self.runtime.run_alone()
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

    def _rest(self) -> None:
        if not self._released():
            self.runtime.stop()
