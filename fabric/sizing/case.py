"""One input of a program, run with whatever depths are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fabric.runs.simulation import simulate
from fabric.sizing.running import UNBOUNDED, Ran, Stuck, recorded
from fabric.telling.errors import Deadlock, FabricError
from fabric.wiring.elaborate import elaborate

if TYPE_CHECKING:
    from fabric.wiring.program import Program

__all__ = ["Case"]


class Case:
    """A program with one input, and what its runs came to.

    Attributes:
        name: what tells it from others; nothing where it is the only one.
        depths: of its channels as it is wired, by option.
        unbounded: a run whose channels hold all they carry, but for those that are pinned.
        runs: how many there were.
    """

    def __init__(
        self, name: str, program: Program, pinned: Mapping[str, int], repeats: int
    ) -> None:
        """Run it unbounded.

        Raises:
            Deadlock: it gets stuck at any depth.
        """
        self.name: Final = name
        self.program: Final = program
        self.runs = 0
        self._repeats: Final = repeats
        edges = elaborate(program).edges
        self.depths: Final = {edge.key: program.channel_depth for edge in edges}
        self._known: Final[dict[tuple[int, ...], Ran | None]] = {}
        unbounded = {**dict.fromkeys(self.depths, UNBOUNDED), **pinned}
        found = self.run(unbounded)
        if found is None:
            raise self._stuck(unbounded, pinned)
        self.unbounded: Final = found

    def run(self, depths: Mapping[str, int]) -> Ran | None:
        """Return a run with ``depths``, all channels named; None where it deadlocks."""
        key = tuple(depths[option] for option in self.depths)
        if key not in self._known:
            self.runs += 1
            try:
                self._known[key] = recorded(self.program, depths, repeats=self._repeats)
            except Stuck:
                self._known[key] = None
        return self._known[key]

    @cached_property
    def cycles_before(self) -> int | None:
        """Of a run as the program is wired; None where that deadlocks."""
        found = self.run(self.depths)
        return None if found is None else found.cycles

    def _stuck(self, depths: Mapping[str, int], pinned: Mapping[str, int]) -> FabricError:
        """Say where it gets stuck whatever the depths."""
        explained = simulate(self.program, depths=depths, on_deadlock="describe").explained
        assert explained is not None
        which = "with the depths that are pinned, whatever the others" if pinned else "at any depth"
        message = f"{self.name or self.program.name} gets stuck {which}: {explained.summary}"
        return Deadlock(message, report=explained.as_json())
