"""The names of operators, stored outputs and extra fields, which are unique in a program."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from typing_extensions import override

from fabric.graph.arguments.described import refuse
from fabric.messages.place import Place, calling_place
from fabric.messages.text import visible

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z](?:[a-z]|$))|(?<=[A-Z])(?=[A-Z][a-z])")
"""Beginnings of words in a class name; consecutive capitals are one word."""


class Names:
    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._reserved: Collection[str] | None = None
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._outputs: dict[str, tuple[str, object, object]] = {}

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self._outputs)

    def take(self, kind: str, name: str | None, place: Place, does: str) -> str:
        """Reserve and return ``name``; if it is None, make a name from the class name ``does``.

        Inside ``numbering``, a name in use gets a number; otherwise it is refused.
        """
        if name is None:
            base = _base(does)
            while name is None or self._is_taken(name):
                self._counts[base] += 1
                name = f"{base}_{self._counts[base]}"
        elif not name:
            refuse(f"{kind} is named '': expected a name of at least one character")
        name = visible(name)
        if self._reserved is not None:
            name = unused(name, self._is_taken)
        elif name in self._places:
            first = self._places[name]
            refuse(
                f"{kind} is named {name!r}, as the operator at {first} is: "
                "expected a name not in use yet"
            )
        self._places[name] = place
        return name

    @contextmanager
    def numbering(self, reserved: Collection[str]) -> Iterator[None]:
        """Add numbers to names of operators that are in use or ``reserved``, inside the block."""
        self._reserved = reserved
        try:
            yield
        finally:
            self._reserved = None

    def _is_taken(self, name: str) -> bool:
        return name in self._places or name in (self._reserved or ())

    def store(self, node_name: str, output: str, tensor: object, tiles: object) -> None:
        """Register an output as stored by an operator.

        Operators that state the same ``tensor`` object and equal ``tiles`` share an output.
        """
        if not output:
            refuse(f"{node_name} stores an output named '': expected a name")
        first, shared, types = self._outputs.setdefault(output, (node_name, tensor, tiles))
        if first == node_name or (tensor is not None and tensor is shared and tiles == types):
            return
        expected = "a name of its own"
        if tensor is not None and shared is not None:
            expected = f"the same tensor object and tiles as there, or {expected}"
        refuse(
            f"{node_name} stores an output {output!r}, as {first} does at {self._places[first]}: "
            f"expected {expected}"
        )


class Extra(dict[str, Callable[[], object]]):
    """Callables that compute further fields of the report, by name. A name is set only once."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, Place] = {}

    @override
    def __setitem__(self, name: str, compute: Callable[[], object]) -> None:
        if name in self:
            refuse(
                f"extra[{name!r}] is given a second time, the first is at {self._places[name]}: "
                "expected a name not in use yet"
            )
        self._places[name] = calling_place()
        super().__setitem__(name, compute)

    def place(self, name: str) -> Place:
        return self._places[name]


def unused(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return ``name``, or ``name_2``, ``name_3`` and so on if it is taken."""
    free, number = name, 1
    while is_taken(free):
        number += 1
        free = f"{name}_{number}"
    return free


@lru_cache
def _base(kind: str) -> str:
    return _WORDS.sub("_", kind.lstrip("_")).lower()
