"""Finds operators with equal behaviour in timing mode, which share one automaton."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from fabric.graph.values.expression import Expression
from fabric.graph.wiring.operator import Operator
from fabric.messages.place import is_ours, is_own
from fabric.timing.engine.channel import Discard
from fabric.timing.engine.unit import ComputeUnit

if TYPE_CHECKING:
    from fabric.graph.values.stream_type import ValueType
    from fabric.graph.wiring.operator import Node
    from fabric.timing.engine.ports import Sink
    from fabric.timing.engine.unit import Unit

_PLAIN: Final = frozenset({bool, float, int, str, type(None)})
"""Most of what operators are made of."""

# Any: each function takes one kind of part.
_Plainly: TypeAlias = "Callable[[Likeness, Any], Any]"


class Likeness:
    """Compares operators by what their behaviour depends on.

    Names and the numbering of data-dependent sizes are ignored.
    """

    def __init__(self) -> None:
        self._values: Final[dict[int, tuple[ValueType, Hashable]]] = {}
        self._made_of: Final[dict[int, tuple[Operator, tuple[Hashable, ...]]]] = {}
        self._plain_of: Final[dict[type, _Plainly]] = {}

    def of(self, node: Node, unit: Unit, outputs: Sequence[Sink]) -> Hashable:
        """Return a key shared by operators of equal behaviour; it includes unread outputs."""
        rate = unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0
        parts = [*self.made_of(node.operator), rate, unit.bytes_per_cycle, len(node.inputs)]
        for stream in (*node.inputs, *node.outputs):
            parts += len(stream.type.shape), self._value(stream.type.value)
        parts += [each.__class__ is Discard for each in outputs]
        return tuple(parts)

    def made_of(self, operator: Operator) -> tuple[Hashable, ...]:
        """Return the class of ``operator`` and its attributes, without its name."""
        known = self._made_of.get(id(operator))
        if known is None:
            # The operator is kept, so that its identity stays its own.
            known = self._made_of[id(operator)] = operator, self._plainly(operator)(self, operator)
        return known[1]

    def is_ours(self, described: object) -> bool:
        """Whether all parts of ``described`` are classes of the fabric or the operators."""
        if not (is_dataclass(described) and is_own(described)):
            return False
        values = [getattr(described, each.name) for each in fields(described)]
        values = [each for each in values if each.__class__ not in _PLAIN]
        return all(self.is_ours(each) for each in values if is_dataclass(each) or callable(each))

    def keeps(self, operator: Operator, behaving: type[Operator]) -> bool:
        """Whether ``operator`` fulfils the promise of ``behaving``, its class of equal behaviour.

        A class may promise for all parts of its operators; the package's promises exclude users'
        functions.
        """
        return not is_ours(behaving) or self.is_ours(operator)

    def _value(self, described: ValueType) -> Hashable:
        known = self._values.get(id(described))
        if known is None:
            # The type is kept, so that its identity stays its own.
            self._values[id(described)] = known = described, self._plain(described)
        return known[1]

    def _plain(self, part: object) -> Hashable:
        return part if part.__class__ in _PLAIN else self._plainly(part)(self, part)

    def _plainly(self, part: object) -> _Plainly:
        kind = part.__class__
        plainly = self._plain_of.get(kind)
        if plainly is None:
            if isinstance(part, tuple):
                plainly = Likeness._items
            elif is_dataclass(part) and not isinstance(part, type):
                plainly = _parts_of(kind)
            elif isinstance(part, Expression):
                plainly = _decided_by_data
            else:
                plainly = _itself if isinstance(part, np.dtype) else _other
            self._plain_of[kind] = plainly
        return plainly

    def _items(self, parts: tuple[object, ...]) -> tuple[Hashable, ...]:
        return tuple(map(self._plain, parts))


def _parts_of(kind: type) -> _Plainly:
    besides = "name" if issubclass(kind, Operator) else None
    names = [each.name for each in fields(kind) if each.name != besides]

    def parts(likeness: Likeness, described: object) -> tuple[Hashable, ...]:
        return (kind, *[likeness._plain(getattr(described, name)) for name in names])

    return parts


def _decided_by_data(*_: object) -> Hashable:
    return "decided by data"


def _itself(_: Likeness, part: Hashable) -> Hashable:
    return part


def _other(_: Likeness, part: object) -> Hashable:
    if hasattr(part, "shape") and hasattr(part, "dtype"):
        # Timing mode has no data, so only the shape and type of a non-integer tensor matter.
        if getattr(part.dtype, "kind", "f") not in "iub":
            return "tensor", part.shape, str(part.dtype)
    elif isinstance(part, Hashable):
        return part
    return id(part)
