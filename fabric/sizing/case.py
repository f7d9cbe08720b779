"""One input of a program, run with whatever depths are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fabric.sizing.running import UNBOUNDED, Ran, Stuck, recorded
from fabric.telling.errors import Deadlock, FabricError
from fabric.wiring.elaborate import elaborate

if TYPE_CHECKING:
    from fabric.wiring.program import Program

__all__ = ["Case"]

_MOST_EVENTS: Final = 20_000_000
"""Of all records that are kept: 320 megabytes."""


class Case:
    """A program with one input, and what its runs came to.

    Attributes:
        name: what tells it from others; nothing where it is the only one.
        depths: of its channels as it is wired, by option.
        unbounded: a run whose channels hold all they carry.
        runs: how many there were.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        repeats: int,
        notify: Callable[[str], object],
    ) -> None:
        """Run it unbounded.

        Args:
            name: what tells it from others.
            program: wired.
            repeats: inputs of it that go through back to back.
            notify: is told of every run.

        Raises:
            Deadlock: it gets stuck even with unbounded channels.
        """
        self.name: Final = name
        self.program: Final = program
        self.runs = 0
        self._repeats: Final = repeats
        self._notify: Final = notify
        edges = elaborate(program).edges
        self.depths: Final = {edge.key: program.channel_depth for edge in edges}
        self._known: Final[dict[tuple[int, ...], Ran | None]] = {}
        unbounded = dict.fromkeys(self.depths, UNBOUNDED)
        found = self.run(unbounded)
        if found is None:
            raise self._stuck(unbounded)
        self.unbounded: Final = found

    def run(self, depths: Mapping[str, int]) -> Ran | None:
        """Return a run with ``depths``, all channels named; None where it deadlocks."""
        key = self._key(depths)
        if key not in self._known:
            self._forget()
            self.runs += 1
            try:
                found = recorded(self.program, depths, repeats=self._repeats)
            except Stuck:
                found = None
            self._known[key] = found
            what = "got stuck" if found is None else f"took {found.cycles:,} cycles"
            which = f"{self.name}: " if self.name else ""
            self._notify(f"{which}run {self.runs:,} {what}")
        return self._known[key]

    def has_run(self, depths: Mapping[str, int]) -> bool:
        """Whether it has been run with ``depths``, and that is not forgotten."""
        return self._key(depths) in self._known

    def _key(self, depths: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(depths[option] for option in self.depths)

    def _forget(self) -> None:
        """Forget the first runs where records take much room."""
        kept = [ran for ran in self._known.values() if ran is not None]
        if sum(len(ran.record.events) for ran in kept) > _MOST_EVENTS:
            del self._known[next(iter(self._known))]

    @cached_property
    def cycles_before(self) -> int | None:
        """Of a run as the program is wired; None where that deadlocks."""
        found = self.run(self.depths)
        return None if found is None else found.cycles

    def _stuck(self, depths: Mapping[str, int]) -> FabricError:
        """Say where it gets stuck whatever the depths."""
        message = f"{self.name or self.program.name} gets stuck even with unbounded channels"
        try:
            recorded(self.program, depths, repeats=self._repeats)
        except Stuck as stuck:
            explained = stuck.explained
            return Deadlock(f"{message}: {explained.summary}", report=explained.as_json())
        raise AssertionError("the same run completes")
