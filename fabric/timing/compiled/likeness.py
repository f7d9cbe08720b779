"""Finds operators with equal behaviour in timing mode, which share one automaton."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass

# Any: an attribute of an operator may have any type.
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fabric.graph.values.expression import Expression
from fabric.graph.wiring.operator import Operator
from fabric.messages.place import is_ours
from fabric.timing.engine.channel import Discard
from fabric.timing.engine.unit import ComputeUnit

if TYPE_CHECKING:
    from fabric.graph.values.stream_type import ValueType
    from fabric.graph.wiring.operator import Node
    from fabric.timing.engine.ports import Sink
    from fabric.timing.engine.unit import Unit

_PLAIN: Final = frozenset({bool, float, int, str, type(None)})
"""Types of most attributes of operators."""


class Likeness:
    """Compares operators by what their behaviour depends on.

    Names and the numbering of data-dependent sizes are ignored.
    """

    def __init__(self) -> None:
        self._values: Final[dict[int, tuple[ValueType, Hashable]]] = {}
        self._made_of: Final[dict[int, tuple[Operator, tuple[Hashable, ...], bool]]] = {}
        self._objects = 0
        self._names: Final[dict[type, list[str]]] = {}

    def of(self, node: Node, unit: Unit, outputs: Sequence[Sink]) -> Hashable:
        """Return a key shared by operators of equal behaviour; it includes unread outputs."""
        rate = unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0
        parts = [*self.made_of(node.operator), rate, unit.bytes_per_cycle, len(node.inputs)]
        for stream in (*node.inputs, *node.outputs):
            parts += len(stream.type.shape), self._value(stream.type.value)
        parts += [sink.__class__ is Discard for sink in outputs]
        return tuple(parts)

    def made_of(self, operator: Operator) -> tuple[Hashable, ...]:
        """Return the class of ``operator`` and its attributes, without its name."""
        entry = self._made_of.get(id(operator))
        if entry is None:
            # The operator is kept, so that no other object gets its id.
            before, parts = self._objects, self._parts(operator)
            entry = self._made_of[id(operator)] = operator, parts, before == self._objects
        return entry[1]

    def is_plain(self, operator: Operator) -> bool:
        """Whether no part of ``operator`` was compared as an object. Objects can change later."""
        return self._made_of[id(operator)][2]

    def is_ours(self, described: object) -> bool:
        """Whether all parts of ``described`` are classes of the fabric or the operators."""
        if not (is_dataclass(described) and is_ours(type(described))):
            return False
        parts = [getattr(described, field.name) for field in fields(described)]
        return all(self.is_ours(part) for part in parts if is_dataclass(part) or callable(part))

    def keeps(self, operator: Operator, behaving: type[Operator]) -> bool:
        """Whether ``behaving.turns`` holds for ``operator`` with all its parts.

        A user's class vouches for all parts, a class of the package for the package's functions.
        """
        return not is_ours(behaving) or self.is_ours(operator)

    def _value(self, described: ValueType) -> Hashable:
        entry = self._values.get(id(described))
        if entry is None:
            # The type is kept, so that no other object gets its id.
            self._values[id(described)] = entry = described, self._plain(described)
        return entry[1]

    def _plain(self, part: Any) -> Any:
        kind = part.__class__
        if kind in _PLAIN or isinstance(part, np.dtype):
            return part
        if isinstance(part, tuple):
            return tuple(map(self._plain, part))
        if isinstance(part, Expression):
            return "decided by data"
        if hasattr(kind, "__dataclass_fields__"):
            return self._parts(part)
        is_tensor = hasattr(part, "shape") and hasattr(part, "dtype")
        # Timing mode has no data, so only the shape and type of a non-integer tensor matter.
        if is_tensor and getattr(part.dtype, "kind", "f") not in "iub":
            return "tensor", part.shape, str(part.dtype)
        self._objects += 1
        return part if isinstance(part, Hashable) and not is_tensor else id(part)

    def _parts(self, described: Any) -> tuple[Hashable, ...]:
        kind = described.__class__
        names = self._names.get(kind)
        if names is None:
            ignored = "name" if issubclass(kind, Operator) else None
            names = [field.name for field in fields(kind) if field.name != ignored]
            self._names[kind] = names
        return (kind, *[self._plain(getattr(described, name)) for name in names])
