"""The traced part of a run: all, a window of cycles, or units that match a pattern."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import ClassVar

from fabric.graph.arguments.described import Described
from fabric.messages.errors import ConfigurationError, FabricError


@dataclass(frozen=True)
class TraceOptions(Described):
    """The traced part of a run.

    Attributes:
        window: the first and the last cycle; elements in flight between them are kept.
        nodes: a glob of unit names; channels with a matching end are kept.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    window: tuple[int, int] | None = None
    nodes: str | None = None

    @classmethod
    def parse(cls, window: str | None, nodes: str | None) -> TraceOptions:
        """Read the texts of the command line."""
        if window is None:
            return cls(None, nodes)
        first, colon, last = window.partition(":")
        if not (colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise ConfigurationError(
                f"--trace-window {window}: expected C0:C1, two cycles, the first not after the last"
            )
        return cls((int(first), int(last)), nodes)

    def check(self, names: list[str]) -> None:
        """Refuse a pattern that matches none of the units ``names``."""
        if self.nodes is not None and not any(map(self.keeps, names)):
            near = ", ".join(names[:8])
            raise ConfigurationError(
                f"--trace-nodes {self.nodes}: no unit has such a name: expected a pattern of "
                f"units such as {near}"
            )

    def keeps(self, name: str) -> bool:
        """Return whether the unit ``name`` is traced."""
        return self.nodes is None or fnmatch.fnmatchcase(name, self.nodes)
