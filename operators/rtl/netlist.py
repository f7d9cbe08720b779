"""A program as hardware: which module stands for each operator, and what is tied to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

# Any: operators of all kinds are looked at.
from typing import Any, Final, NamedTuple

import numpy as np

from fabric import (
    Broadcast,
    Program,
    ProgramError,
    StreamType,
    TileType,
    Trace,
)
from fabric.extend import Operator
from operators.accum import Accum
from operators.addresses import CacheReadAddresses, ExpertAddresses, FilterLastTile
from operators.consumer import Consumer
from operators.eager_merge import EagerMerge
from operators.expand import Expand, Repeat
from operators.flat_map import FlatMap
from operators.flatten import Flatten
from operators.functions.elementwise import Add, Div, Maximum, Mul
from operators.linear_off_chip_load import LinearOffChipLoad
from operators.linear_off_chip_store import LinearOffChipStore
from operators.map import Map
from operators.metadata import Metadata
from operators.parallelize import Parallelize
from operators.partition import Partition
from operators.promote import Promote
from operators.ragged_integers import RaggedIntegers
from operators.random_off_chip_load import RandomOffChipLoad
from operators.reassemble import Reassemble
from operators.reshape import Reshape
from operators.rtl import compute, memory, routing, sequences, shapes
from operators.rtl.blocks import Unit
from operators.rtl.tokens import CONTROL_BITS, packed
from operators.selectors import Selectors

__all__ = ["Channel", "Instance", "Netlist", "netlist"]

Binding = tuple[str, Callable[[], Unit], dict[str, int]]
"""The name of a module, what builds it, and the parameters of one instance."""


class Channel(NamedTuple):
    """A channel: its ends, and how long and deep it is."""

    name: str
    producer: int
    consumer: int
    depth: int
    forward_cycles: int
    backward_cycles: int


@dataclass(frozen=True)
class Instance:
    """A unit.

    Attributes:
        name: of the operator.
        module, build: which module stands for it, and what builds that.
        parameters: tied to its ports.
        inputs, outputs: numbers of channels, in port order.
        given: what a source sends, as the bits of tokens.
        latencies_cycles: of its bursts, in their order; None where it has none.
    """

    name: str
    module: str
    build: Callable[[], Unit]
    parameters: dict[str, int]
    inputs: list[int]
    outputs: list[int]
    given: list[int] | None = None
    latencies_cycles: list[int] | None = None


@dataclass(frozen=True)
class Netlist:
    """Units and channels of a program, or of several that run side by side."""

    units: list[Instance]
    channels: list[Channel]


class _Place(NamedTuple):
    """An operator where it stands.

    Attributes:
        name: its.
        operator: what it is.
        inputs, outputs: what its streams carry.
        read: outputs that have a reader.
        bandwidth: bytes a cycle of an on-chip port.
        rate: FLOPs a cycle.
    """

    name: str
    operator: Any
    inputs: tuple[StreamType, ...]
    outputs: tuple[StreamType, ...]
    read: tuple[int, ...]
    bandwidth: int
    rate: int

    def refused(self, why: str) -> ProgramError:
        """Return the error of an operator that no module stands for."""
        kind = type(self.operator).__name__
        return ProgramError(f"{self.name}: {kind} has no hardware module{why}")

    def bytes_of(self, stream: StreamType) -> int:
        """Return the bytes of one number of a stream of tiles; 0 of any other."""
        value = stream.value
        if not isinstance(value, TileType):
            return 0
        size_bytes = value.dtype.itemsize
        if size_bytes > 16:
            raise self.refused(f" for {value.dtype}")
        return size_bytes


def _function(name: str, function: Any) -> str | None:
    """Return the module's name of a function; None where there is none."""
    kind = type(function)
    if kind in (Add, Mul, Div, Maximum):
        return "Binary"
    found = kind.__name__ + ("T" if getattr(function, "transposed", False) else "")
    known: dict[str, Collection[str]] = {
        "Map": compute.FUNCTIONS,
        "Accum": compute.ACCUMULATIONS,
        "FlatMap": sequences.SPLITS,
    }
    return found if found in known[name] and kind.__module__.startswith("operators.") else None


def _size(dim: Any) -> int:
    """Return a size of a type, 0 where data decide it."""
    return dim if isinstance(dim, int) else 0


def _bind_map(place: _Place) -> Binding:
    operator = place.operator
    function = _function("Map", operator.function)
    if function is None:
        raise place.refused(f" for {type(operator.function).__name__}")
    parameters = {
        "bandwidth": place.bandwidth,
        "rate": max(1, place.rate),
        "result_bytes": place.bytes_of(place.outputs[0]),
        "to_memory": int(operator.to_memory),
    }
    for number, each in enumerate(place.inputs):
        parameters[f"bytes_{number}"] = place.bytes_of(each)
    return f"Map_{function}", lambda: compute.map_(function), parameters


def _bind_accum(place: _Place) -> Binding:
    operator, result = place.operator, place.outputs[0].value
    function = _function("Accum", operator.reduction)
    if function is None:
        raise place.refused(f" for {type(operator.reduction).__name__}")
    assert isinstance(result, TileType)
    parameters = {
        "rank": operator.rank,
        "bandwidth": place.bandwidth,
        "rate": max(1, place.rate),
        "to_memory": int(operator.to_memory),
        "store_bytes": operator.reduction.start_bytes(result),
        "rows": 0 if function == "RetileRow" else _size(result.rows),
        "cols": 0 if function == "RetileCol" else _size(result.cols),
    }
    for number, each in enumerate(place.inputs):
        parameters[f"bytes_{number}"] = place.bytes_of(each)
    return f"Accum_{function}", lambda: compute.accum(function), parameters


def _bind_flat_map(place: _Place) -> Binding:
    function = _function("FlatMap", place.operator.split)
    if function is None:
        raise place.refused(f" for {type(place.operator.split).__name__}")
    parameters = {"valid_only": int(place.operator.split.valid_only)}
    return f"FlatMap_{function}", lambda: sequences.flat_map(function), parameters


def _bind_flatten(place: _Place) -> Binding:
    operator = place.operator
    return "Flatten", shapes.flatten, {"inner": operator.inner, "outer": operator.outer}


def _bind_promote(place: _Place) -> Binding:
    dimensions = len(place.inputs[0].shape)
    inside = dimensions if place.operator.dimension is None else place.operator.dimension
    return (
        "Promote", shapes.promote, {"inside": inside, "outermost": int(inside == dimensions)}
    )  # fmt: skip


def _bind_reshape(place: _Place) -> Binding:
    operator, tile = place.operator, place.inputs[0].value
    outputs = len(place.read)
    if operator.dimension:
        parameters = {"chunk": operator.chunk, "dimension": operator.dimension}
        name = f"ReshapeOuter_{outputs}"
        return name, lambda: shapes.reshape_outer(outputs), parameters
    rows, cols = (tile.rows, tile.cols) if isinstance(tile, TileType) else (0, 0)
    parameters = {"chunk": operator.chunk, "rows": _size(rows), "cols": _size(cols)}
    parameters["outermost"] = int(operator.outermost)
    return f"Reshape_{outputs}", lambda: shapes.reshape(outputs), parameters


def _bind_repeat(place: _Place) -> Binding:
    return "Repeat", shapes.repeat, {"count": place.operator.count}


def _bind_expand(place: _Place) -> Binding:
    return "Expand", shapes.expand, {"rank": place.operator.rank}


def _bind_broadcast(place: _Place) -> Binding:
    outputs = len(place.outputs)
    return f"Broadcast_{outputs}", lambda: shapes.broadcast(outputs), {}


def _bind_consumer(_place: _Place) -> Binding:
    return "Consumer", shapes.consumer, {}


def _consumers(place: _Place, count: int) -> int:
    if count > CONTROL_BITS:
        raise place.refused(f" that steers {count}: expected at most {CONTROL_BITS} ways")
    return count


def _bind_partition(place: _Place) -> Binding:
    consumers = _consumers(place, len(place.outputs))
    parameters = {
        "rank": place.operator.rank,
        "switch": place.operator.switch_cycles,
        "bytes_0": place.bytes_of(place.inputs[0]),
        "bandwidth": place.bandwidth,
    }
    return f"Partition_{consumers}", lambda: routing.partition(consumers), parameters


def _bind_parallelize(place: _Place) -> Binding:
    if place.operator.switch_cycles > 1:
        raise place.refused(" where it switches in more than 1 cycle")
    consumers = len(place.outputs)
    return (
        f"Parallelize_{consumers}",
        lambda: routing.parallelize(consumers),
        {"rank": place.operator.rank},
    )


def _bind_reassemble(place: _Place) -> Binding:
    producers = _consumers(place, len(place.inputs) - 1)
    parameters = {
        "rank": place.operator.rank,
        "switch": place.operator.switch_cycles,
        "bytes_0": place.bytes_of(place.inputs[0]),
        "bandwidth": place.bandwidth,
    }
    return f"Reassemble_{producers}", lambda: routing.reassemble(producers), parameters


def _bind_eager_merge(place: _Place) -> Binding:
    producers = _consumers(place, len(place.inputs))
    reads = "".join("ds"[port] for port in place.read)
    return (
        f"EagerMerge_{producers}_{reads}",
        lambda: routing.eager_merge(producers, reads),
        {"rank": place.operator.rank},
    )


def _bind_load(place: _Place) -> Binding:
    tile = place.outputs[0].value
    assert isinstance(tile, TileType)
    # A source's view is inside of a dimension of 1.
    before = len(place.inputs[0].shape) if place.inputs else 1
    view = place.outputs[0].shape[before:]
    if len(view) > memory.DIMENSIONS:
        raise place.refused(f" for views of rank {len(view)}: expected at most {memory.DIMENSIONS}")
    sizes = [dim for dim in (*view, tile.rows, tile.cols) if isinstance(dim, int)]
    if len(sizes) != len(view) + 2 or 0 in sizes:
        raise place.refused(" for tensors that are empty")
    *dimensions, rows, cols = sizes
    inputs = len(place.inputs)
    parameters = {"rank": len(dimensions), "rows": rows, "cols": cols}
    parameters |= {f"size_{number}": size for number, size in enumerate(reversed(dimensions))}
    return f"Load_{inputs}", lambda: memory.load(inputs), parameters


def _bind_read_addresses(place: _Place) -> Binding:
    return "CacheReadAddresses", sequences.read_addresses, {"stride": place.operator.stride}


def _bind_filter_last(_place: _Place) -> Binding:
    return "FilterLastTile", sequences.filter_last, {}


def _bind_expert_addresses(place: _Place) -> Binding:
    return "ExpertAddresses", sequences.expert_addresses, {"tiles": place.operator.tiles}


def _bind_store(_place: _Place) -> Binding:
    return "Store", memory.store, {}


def _bind_source(place: _Place) -> Binding:
    charges = int(not isinstance(place.operator, Metadata))
    return "Source", memory.source, {"charges": charges}


_BINDINGS: Final[dict[type[Operator], Callable[[_Place], Binding]]] = {
    Accum: _bind_accum,
    Broadcast: _bind_broadcast,
    CacheReadAddresses: _bind_read_addresses,
    Consumer: _bind_consumer,
    EagerMerge: _bind_eager_merge,
    Expand: _bind_expand,
    ExpertAddresses: _bind_expert_addresses,
    FilterLastTile: _bind_filter_last,
    FlatMap: _bind_flat_map,
    Flatten: _bind_flatten,
    LinearOffChipLoad: _bind_load,
    LinearOffChipStore: _bind_store,
    Map: _bind_map,
    Metadata: _bind_source,
    Parallelize: _bind_parallelize,
    Partition: _bind_partition,
    Promote: _bind_promote,
    RaggedIntegers: _bind_source,
    RandomOffChipLoad: _bind_load,
    Reassemble: _bind_reassemble,
    Repeat: _bind_repeat,
    Reshape: _bind_reshape,
    Selectors: _bind_source,
}
"""What binds an operator of each kind to its module."""


def _levels(shape: Sequence[int]) -> Iterator[int]:
    """Yield for each element how many dimensions it closes; the outermost closes with the last."""
    for place in np.ndindex(*shape):
        level = 0
        for at, size in zip(reversed(place), reversed(shape), strict=True):
            if at + 1 != size:
                break
            level += 1
        yield level


def _sent(place: _Place) -> list[int]:
    """Return the tokens of a source."""
    operator = place.operator
    size = {"rows": 1, "cols": 1, "valid_rows": 1, "valid_cols": 1}
    if isinstance(operator, Selectors):
        *shape, _ = operator.choice.shape
        rows = operator.choice.reshape(math.prod(shape), -1).tolist()
        controls = [sum(1 << hit for hit in set(row)) for row in rows]
        _consumers(place, operator.width)
        fields: list[dict[str, int]] = [{"control": control} for control in controls]
    elif isinstance(operator, Metadata):
        shape = list(operator.values.shape)
        fields = [{"control": int(each), **size} for each in operator.values.reshape(-1).tolist()]
    else:
        return _lists(operator.lists, size)
    if 0 in shape:
        raise place.refused(" for streams that are empty")
    return [packed(level=level, **each) for level, each in zip(_levels(shape), fields, strict=True)]


def _lists(lists: Any, size: dict[str, int]) -> list[int]:
    tokens = []
    for number, each in enumerate(lists):
        closing = 2 if number == len(lists) - 1 else 1
        if not len(each):
            tokens.append(packed(bare=1, level=closing, empty=0))
        for at, control in enumerate(each):
            level = closing if at == len(each) - 1 else 0
            tokens.append(packed(level=level, control=int(control), **size))
    return tokens or [packed(bare=1, level=2, empty=1)]


def netlist(program: Program, trace: Trace) -> Netlist:
    """Return the hardware of ``program``, whose run in timing mode left ``trace``.

    Of the trace it takes the channels, their depths and hops, the units of inferred Broadcasts, and
    how long off-chip memory took for each burst.

    Raises:
        ProgramError: an operator has no module, or not for what it is given.
    """
    nodes = {node.name: node for node in program.nodes}
    channels, readers, writers = _channels(trace)
    units = trace.query("SELECT name, operator, flops_per_cycle FROM units ORDER BY unit").rows()
    latencies: dict[int, list[int]] = {}
    bursts = trace.query("SELECT unit, cycles FROM bursts ORDER BY unit, submitted_cycle").rows()
    for number, cycles in bursts:
        latencies.setdefault(number, []).append(int(cycles))
    found = []
    for number, (name, operator, rate) in enumerate(units):
        inputs, outputs = readers.get(number, {}), writers.get(number, {})
        node = nodes.get(name)
        if node is None:
            if operator != "Broadcast":
                raise ProgramError(f"{name}: {operator} has no hardware module")
            place = _Place(name, None, (), (None,) * len(outputs), (), 1, 0)  # type: ignore[arg-type]
            module, build, parameters = _bind_broadcast(place)
        else:
            place = _Place(
                name,
                node.operator,
                node.input_types,
                node.output_types,
                tuple(sorted(outputs)),
                program.hardware.on_chip.bytes_per_cycle,
                rate,
            )
            bind = _BINDINGS.get(type(node.operator))
            if bind is None:
                raise place.refused("")
            module, build, parameters = bind(place)
        found.append(
            Instance(
                name,
                module,
                build,
                parameters,
                [inputs[port] for port in sorted(inputs)],
                [outputs[port] for port in sorted(outputs)],
                given=_sent(place) if module == "Source" else None,
                latencies_cycles=latencies.get(number, [])
                if module.startswith(("Load", "Store"))
                else None,
            )
        )
    return Netlist(found, channels)


def _channels(
    trace: Trace,
) -> tuple[list[Channel], dict[int, dict[int, int]], dict[int, dict[int, int]]]:
    """Return the channels; by unit and port, which are read and written."""
    rows = trace.query(
        "SELECT name, producer, consumer, depth, forward_cycles, backward_cycles "
        "FROM channels ORDER BY channel"
    ).rows()
    channels = [Channel(*row) for row in rows]
    readers: dict[int, dict[int, int]] = {}
    writers: dict[int, dict[int, int]] = {}
    for number, each in enumerate(channels):
        source, target = each.name.split(" -> ")
        writers.setdefault(each.producer, {})[int(source.rpartition(".")[2])] = number
        readers.setdefault(each.consumer, {})[int(target.rpartition(".")[2])] = number
    return channels, readers, writers
