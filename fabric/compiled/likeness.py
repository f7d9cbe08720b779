"""Which operators behave alike in timing mode, so that one has to be asked for all of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final

from fabric.engine.discard import Discard
from fabric.engine.unit import ComputeUnit
from fabric.telling.place import is_ours, is_own
from fabric.values.dims import Expression
from fabric.values.stream_type import StreamType
from fabric.wiring.behaviour import behaving_as

if TYPE_CHECKING:
    from fabric.engine.ports import Ports
    from fabric.wiring.operator import Operator

__all__ = ["Likeness"]

_PLAIN: Final = frozenset({bool, float, int, str, type(None)})
"""Most of what operators are made of."""


class Likeness:
    """Tells operators apart by what their behaviour depends on.

    Their names are not part of that, nor is which of the sizes that data decide a stream has.
    """

    def __init__(self) -> None:
        """Know no type."""
        self._types: Final[dict[int, tuple[StreamType, Hashable]]] = {}
        self._names: Final[dict[type, tuple[str, ...]]] = {}
        self._behaving: Final[dict[type, type[Operator]]] = {}
        self._made_of: Final[dict[int, tuple[Operator, tuple[Hashable, ...]]]] = {}

    def turns(self, operator: Operator) -> bool:
        """Whether ``operator`` goes on as its last turn said.

        A class may promise that for all that its operators are made of; the promise of one of ours
        does not hold for a function of a user's.
        """
        kind = type(operator)
        behaving = self._behaving.get(kind)
        if behaving is None:
            self._behaving[kind] = behaving = behaving_as(kind)
        if not vars(behaving).get("turns", False):
            return False
        return not is_ours(behaving) or self.is_ours(operator)

    def of(self, operator: Operator, ports: Ports) -> Hashable:
        """Return what operators of one behaviour share."""
        unit = ports.unit
        rate = unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0
        parts = self.made_of(operator)
        types = [self._type(each) for each in (*ports.input_types, *ports.output_types)]
        unread = tuple(isinstance(each, Discard) for each in ports.outputs)
        rates = rate, unit.bytes_per_cycle
        return (*parts, len(ports.inputs), *types, unread, *rates)

    def made_of(self, operator: Operator) -> tuple[Hashable, ...]:
        """Return the class of ``operator`` and what it is made of, but for its name."""
        known = self._made_of.get(id(operator))
        if known is None:
            names = self._names_of(operator)
            given = [getattr(operator, name) for name in names if name != "name"]
            parts = [each if each.__class__ in _PLAIN else self._plain(each) for each in given]
            # The operator is kept, so that its identity stays its own.
            known = self._made_of[id(operator)] = operator, (id(type(operator)), *parts)
        return known[1]

    def is_ours(self, described: object) -> bool:
        """Whether all that ``described`` is made of is the fabric's or the operators' own."""
        if not (is_dataclass(described) and is_own(described)):
            return False
        values = [getattr(described, name) for name in self._names_of(described)]
        values = [each for each in values if each.__class__ not in _PLAIN]
        return all(self.is_ours(each) for each in values if is_dataclass(each) or callable(each))

    def _type(self, described: StreamType) -> Hashable:
        known = self._types.get(id(described))
        if known is None:
            # The type is kept, so that its identity stays its own.
            known = described, (len(described.shape), self._plain(described.value))
            self._types[id(described)] = known
        return known[1]

    def _names_of(self, described: object) -> tuple[str, ...]:
        kind = type(described)
        names = self._names.get(kind)
        if names is None:
            assert is_dataclass(described)
            self._names[kind] = names = tuple(each.name for each in fields(described))
        return names

    def _plain(self, part: object) -> Hashable:
        if part.__class__ in _PLAIN:
            return part
        plain: Hashable = id(part)
        if isinstance(part, tuple):
            plain = tuple(map(self._plain, part))
        elif is_dataclass(part):
            values = [self._plain(getattr(part, name)) for name in self._names_of(part)]
            plain = (id(type(part)), *values)
        elif isinstance(part, Expression):
            plain = "decided by data"
        elif hasattr(part, "shape") and hasattr(part, "dtype"):
            # Of a tensor without integers only its shape matters where there are no data.
            if getattr(part.dtype, "kind", "f") not in "iub":
                plain = "tensor", part.shape, str(part.dtype)
        elif isinstance(part, Hashable):
            plain = part
        return plain
