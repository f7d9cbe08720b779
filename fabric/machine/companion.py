"""Who runs beside a machine, as a task, and is told what happens on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.engine.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.machine.machine import Machine

__all__ = ["Companion"]


class Companion(Observer):
    """An observer with a task of its own."""

    def attach(self, machine: Machine, interrupt: Callable[[], bool]) -> None:
        """``machine`` is about to run.

        Args:
            machine: on which nothing has happened.
            interrupt: abandons the run, from any thread; says whether it still goes on.
        """
        raise NotImplementedError

    async def run(self) -> None:
        """Run as long as the operators do."""
        raise NotImplementedError
