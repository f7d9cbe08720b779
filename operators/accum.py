"""Accum: fold the inner dimensions of a stream into one tile per group.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import (
    ARTIFACT_BYTES,
    BareStop,
    ComputeOperator,
    Costs,
    Ports,
    ShapeError,
    Stream,
    StreamType,
    TileType,
    Wiring,
    check_same_shape,
    product,
)
from operators.functions.base import tile_types
from operators.functions.reduction import Reduction
from operators.pairing import peek_all, take_all

__all__ = ["Accum"]


@dataclass(frozen=True)
class Accum(ComputeOperator):
    """Fold the innermost ``rank`` dimensions of one stream, or of several of one shape.

    Shapes:
        inputs: [D_a, ..., D_rank, ..., D_0] of tiles; output: [D_a, ..., D_rank]. An empty group
        gives the initial value.

    Timing:
        Per element, the longest of loading and computing; for the last of a group also of storing
        the accumulator as it starts, where ``to_memory``. Inputs are released before the output
        waits for a slot.

    Memory:
        On chip, one accumulator.

    Attributes:
        reduction: the accumulator.
        rank: dimensions folded away, at least 1.
        to_memory: the output is written to a memory unit, and its readers load it from there.
    """

    reduction: Reduction
    rank: int = 1
    to_memory: bool = False

    def __call__(self, *inputs: Stream) -> Stream:
        """Return the stream of results, one a group."""
        (result,) = self.wire(*inputs)
        return result

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.reduction.fixed_cycles is None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        name = f"Accum({type(self.reduction).__name__})"
        tiles = tile_types(name, tuple(each.value for each in inputs), len(inputs))
        source = inputs[0]
        if not 1 <= self.rank <= source.rank:
            raise ShapeError(
                f"{name} folds rank {self.rank}, but {source} has rank {source.rank}: "
                f"expected 1 <= rank <= {source.rank}"
            )
        for other in inputs[1:]:
            check_same_shape(name, source, other)
        outer, group = source.shape[: -self.rank], source.shape[-self.rank :]
        return (StreamType(outer, self.reduction.infer(product(group), *tiles)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        tiles = tile_types("Accum", tuple(each.value for each in inputs), len(inputs))
        result = outputs[0].value
        assert isinstance(result, TileType)
        return Costs(
            on_chip_bytes=self.reduction.operand_bytes(*tiles) + result.size_bytes,
            flops=inputs[0].count * self.reduction.flops(*tiles),
            artifact_on_chip_bytes=result.size_elements * ARTIFACT_BYTES,
        )

    @override
    async def run(self, ports: Ports) -> None:
        reduction, rank, sink, unit = self.reduction, self.rank, ports.sink, ports.compute_unit
        result_type, functional = ports.output_types[0].value, ports.functional
        assert isinstance(result_type, TileType)
        store = unit.transfer(reduction.start_bytes(result_type)) if self.to_memory else 0
        state = reduction.start(result_type, functional)
        while (found := await peek_all(ports)) is not None:
            elements, stop = found
            tiles = [value for value, _ in elements]
            if isinstance(tiles[0], BareStop):
                take_all(ports)
                if tiles[0].empty_dimension >= rank:
                    await sink.send_bare(stop - rank, tiles[0].empty_dimension - rank)
                    continue
            else:
                state = reduction.update(state, *tiles)
                load = sum(unit.transfer(tile.size_bytes) for tile in tiles if tile.in_memory)
                compute = reduction.cycles(unit, *tiles)
                unit.charge(max(load, compute, store if stop >= rank else 0))
                take_all(ports)
            if stop >= rank:
                result = reduction.finish(state, result_type, functional)
                if not reduction.keeps_placement:
                    result = result.placed(in_memory=self.to_memory)
                await sink.send((result, stop - rank))
                state = reduction.start(result_type, functional)
