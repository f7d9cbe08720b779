"""Calls on the numbers of routed rows: a Map for every expert or region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from operators.functions.steps import Chain
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.routed import Routed, RoutedStreams, Spread, as_packed, as_rows
from operators.kernels.tensors import Opaque
from operators.map import Map

__all__ = ["RaggedMap", "common_form"]


class RaggedMap(Kernel):
    """A Map over routed rows, which come in one form.

    Attributes:
        chain: of the Maps.
    """

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, chain: Chain, operands: Sequence[Operand], result: Opaque
    ) -> None:
        """Apply ``chain`` to routed rows in the form of the result."""
        self.name = name
        self.chain = chain
        self.operands = tuple(operands)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Opaque)
        assert isinstance(result.form, Routed)
        given = []
        for number, (operand, streams) in enumerate(zip(self.operands, inputs, strict=True)):
            source = operand.view.source
            assert isinstance(source, Opaque)
            assert isinstance(source.form, Routed)
            assert isinstance(streams, tuple)
            each = RoutedStreams.of(source.form, streams)
            name = f"{self.name}_of{number}"
            match result.form.spread:
                case Spread.ROWS:
                    each = as_rows(name, each)
                case Spread.PACKED:
                    each = as_packed(name, each)
                case Spread.TILED:
                    pass
            given.append(each)
        first = given[0]
        data = []
        kind = "e" if result.form.packing is None else "r"
        for number, streams in enumerate(zip(*(each.data for each in given), strict=True)):
            alike = [
                each if each.shape == streams[0].shape else each.assume(*streams[0].shape)
                for each in streams[1:]
            ]
            data.append(Map(self.chain, name=f"{self.name}_{kind}{number}")(streams[0], *alike))
        return (first.with_data(result.form, data).flat(),)


def common_form(forms: Sequence[Routed], *, whole_rows: bool) -> Routed:
    """Return the form in which routed rows meet: tiles only where they were packed together."""
    first = forms[0]
    if any(each.packing is not first.packing for each in forms):
        return Routed(first.routing, Spread.ROWS)
    if first.spread is Spread.ROWS or all(each.spread is Spread.PACKED for each in forms):
        return first
    if whole_rows or any(each.spread is not Spread.TILED for each in forms):
        return Routed(first.routing, Spread.PACKED, first.packing)
    return first
