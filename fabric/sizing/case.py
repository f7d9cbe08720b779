"""One input of a program, run with whatever depths are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fabric.sizing.running import Ran, Stuck, recorded, unbounded
from fabric.telling.errors import Deadlock
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.runs.options import Options
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
        options: Options,
        repeats: int,
        notify: Callable[[str], object],
    ) -> None:
        """Run it unbounded.

        Args:
            name: what tells it from others.
            program: wired.
            options: how to run it, whatever the depths.
            repeats: inputs of it that go through back to back.
            notify: is told of every run.

        Raises:
            Deadlock: it gets stuck even with unbounded channels.
        """
        self.name: Final = name
        self.program: Final = program
        self.runs = 0
        self._options: Final = options
        self._repeats: Final = repeats
        self._notify: Final = notify
        deepest = unbounded(program)
        self.depths: Final = {option: program.depth_of(option) for option in deepest}
        self._known: Final[dict[tuple[int, ...], Ran | None]] = {}
        try:
            self.unbounded: Final = self._run(deepest)
        except Stuck as stuck:
            explained = stuck.explained
            raise Deadlock(
                f"{name or program.name} gets stuck even with unbounded channels: "
                f"{explained.summary}",
                report=explained.as_json(),
            ) from None

    def run(self, depths: Mapping[str, int]) -> Ran | None:
        """Return a run with ``depths``, all channels named; None where it deadlocks."""
        key = self._key(depths)
        if key not in self._known:
            try:
                self._run(depths)
            except Stuck:
                self._known[key] = None
                self._told("got stuck")
        return self._known[key]

    def _run(self, depths: Mapping[str, int]) -> Ran:
        """Run it and keep that; ``Stuck`` where it deadlocks."""
        self._forget()
        self.runs += 1
        found = recorded(self.program, depths, self._options, repeats=self._repeats)
        self._known[self._key(depths)] = found
        self._told(f"took {counted(found.cycles, 'cycle')}")
        return found

    def _told(self, what: str) -> None:
        which = f"{self.name}: " if self.name else ""
        self._notify(f"{which}run {self.runs:,} {what}")

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
