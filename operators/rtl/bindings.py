"""The hardware module of each operator, and its parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

# Any: operators of all kinds are looked at.
from typing import Any, Final, TypeVar

import numpy as np

from fabric import Broadcast, Initial, ProgramError, SelectorType, StreamType, TileType, TupleType
from fabric.extend import BufferType, Operator
from operators.accum import Accum, Scan
from operators.addresses import CacheReadAddresses, ExpertAddresses, FilterLastTile
from operators.bufferize import Bufferize, Streamify
from operators.expand import Expand, Repeat
from operators.flat_map import FlatMap
from operators.functions.elementwise import Add, Div, Maximum, Mul
from operators.functions.matmul import ScaledAdd
from operators.functions.retile import SplitTiles
from operators.functions.row_functions import PadRows
from operators.functions.steps import Chain
from operators.map import Map
from operators.merge_join import Intersect
from operators.off_chip_load import LinearOffChipLoad, Load, RandomOffChipLoad
from operators.off_chip_store import LinearOffChipStore, RandomOffChipStore
from operators.partition import Parallelize, Partition
from operators.pieces.lowering import LoadPieces, StorePieces
from operators.pieces.units import (
    AccumPieces,
    BigTile,
    BroadcastPieces,
    MapPieces,
    PromotePieces,
    ReadPieces,
    RepeatPieces,
    TokenPieces,
)
from operators.reassemble import EagerMerge, Reassemble
from operators.rtl import chains, compute, description, memory, pieces, routing, sequences
from operators.rtl.own import Binding, Place, is_tile, stated
from operators.scatter import Scatter
from operators.shape import Flatten, Promote, Reshape
from operators.sources import Consumer, Metadata, RaggedIntegers, Selectors
from operators.tiles.integers import is_integer
from operators.zip import Zip

T = TypeVar("T")


def is_told(operator: Operator, outputs: Sequence[StreamType]) -> bool:
    """Whether numbers in an operator's outputs, or how many there are, come from outside."""
    match operator:
        case Map(function=function):
            own = hasattr(function, "hardware")
            hardware = stated(function) if own else compute.FUNCTIONS.get(type(function).__name__)
            return isinstance(hardware, description.Function) and hardware.is_told
        case FlatMap(split=split):
            return hasattr(split, "hardware")
        case Load():
            return is_integer(outputs[0].value)
        case _:
            return False


def _function(place: Place, function: Any, known: Mapping[str, T], kind: type[T]) -> tuple[str, T]:
    """Return the name of a function and its hardware, which its class may provide."""
    name = type(function).__name__
    if hasattr(function, "hardware"):
        hardware = stated(function)
        if not isinstance(hardware, kind):
            raise ProgramError(
                f"{place.name}: {name}.hardware returns {hardware!r}: expected {_a(kind.__name__)}"
            )
        return name, hardware
    if type(function) in (Add, Mul, Div, Maximum):
        name = "Binary"
    if type(function) is ScaledAdd:
        name += str(1 + (function.alpha != 1) + (function.beta != 1))
    name += "T" if getattr(function, "transposed", False) else ""
    if name not in known or not type(function).__module__.startswith("operators."):
        raise place.refused(f" for {type(function).__name__}")
    return name, known[name]


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOU' else 'a'} {noun}"


def _size(dim: Any) -> int:
    """Return a size of a type; 0 if data decide it."""
    return dim if isinstance(dim, int) else 0


def _map_function(place: Place, function: Any) -> tuple[str, description.Function]:
    if type(function) is Chain:
        missing = chains.refusal(function)
        if missing is not None:
            raise place.refused(f" for a Chain with {missing}")
        if is_integer(place.outputs[0].value):
            raise place.refused(" for a Chain that gives an integer")
        return chains.chain_function(function)
    if type(function) is PadRows:
        return f"PadRows_{function.rows}", compute.pad_rows(function.rows)
    name, hardware = _function(place, function, compute.FUNCTIONS, description.Function)
    if hardware.operations is None:
        fixed = function.fixed_cycles
        operations = function.flops if fixed is None else lambda *_: fixed
        hardware = hardware._replace(operations=operations)
    return name, hardware


def _bind_map(place: Place) -> Binding:
    operator = place.operator
    name, function = _map_function(place, operator.function)
    parameters = {
        "bandwidth": place.bandwidth,
        "rate": _rate(place, operator.function),
        "result_bytes": place.bytes_of(place.outputs[0].value),
        "to_memory": int(operator.to_memory),
        "stride": getattr(operator.function, "stride", 0),
    }
    more, items = _operands(place, parameters, function.operands)
    return f"Map_{name}{more}", partial(compute.map_, function, items), parameters


def _rate(place: Place, function: Any) -> int:
    """Return operations per cycle. A function with fixed cycles counts cycles, so its rate is 1."""
    return max(1, place.rate) if function.fixed_cycles is None else 1


def _operands(place: Place, parameters: dict[str, int], count: int) -> tuple[str, list[int]]:
    """Return a suffix for the module, and the tiles per input. Add bytes to ``parameters``."""
    items = place.items()
    if sum(map(len, items)) != count:
        raise place.refused(f" for {place.inputs}: its function takes {count}")
    for number, each in enumerate(itertools.chain.from_iterable(items)):
        parameters[f"bytes_{number}"] = place.bytes_of(each)
    counts = [len(each) for each in items]
    return "" if max(counts) == 1 else "_" + "".join(map(str, counts)), counts


def _bind_fold(place: Place) -> Binding:
    operator, result = place.operator, place.outputs[0].value
    kind, reduction = type(operator).__name__, operator.reduction
    name, function = _function(place, reduction, compute.ACCUMULATIONS, description.Accumulation)
    first = result.items[0] if isinstance(result, TupleType) else result
    assert isinstance(first, TileType)
    parameters = {
        "rank": operator.rank,
        "bandwidth": place.bandwidth,
        "rate": _rate(place, reduction),
        "to_memory": int(operator.to_memory),
        "store_bytes": reduction.start_bytes(result),
        "rows": 0 if name == "RetileRow" else _size(first.rows),
        "cols": 0 if name == "RetileCol" else _size(first.cols),
    }
    more, items = _operands(place, parameters, function.operands)
    every = isinstance(operator, Scan)
    return (f"{kind}_{name}{more}", partial(compute.fold, function, items, every=every), parameters)


def _bind_streamify(place: Place) -> Binding:
    operator, buffer = place.operator, place.inputs[0].value
    assert isinstance(buffer, BufferType)
    inner = buffer.shape if operator.shape is None else operator.shape
    sizes = [*operator.repeats, *inner]
    rank, inputs = len(sizes), len(place.inputs)
    if rank > memory.COUNTERS:
        raise place.refused(f" for readings of rank {rank}: expected at most {memory.COUNTERS}")
    parameters = {"rank": rank, "ragged": len(inner) - 1 if operator.shape is None else rank}
    if 0 in sizes:
        raise place.refused(" for buffers that are empty")
    parameters |= _size_parameters(sizes)
    if inputs > 1:
        parameters["repeats"] = len(place.inputs[1].shape) - len(place.inputs[0].shape)
    return f"Streamify_{inputs}", partial(memory.streamify, inputs), parameters


def _bind_scatter(place: Place) -> Binding:
    operator, word = place.operator, place.outputs[0].value
    assert isinstance(word, TileType)
    cycles = max(1, -(-word.size_bytes // place.bandwidth))
    parameters = {
        "rank": operator.rank,
        "words": operator.words,
        "width": operator.width,
        "word_cycles": cycles,
        "load_cycles": cycles,
        "rows": word.rows,
        "cols": word.cols,
    }
    banks = operator.banks
    return f"Scatter_{banks}", partial(memory.scatter, banks), parameters


def _bind_zip(place: Place) -> Binding:
    values = [each.value for each in place.inputs]
    if len(values) == 2 and all(map(is_integer, values)):
        return "Zip_numbers", routing.zip_numbers, {}
    if len(values) > 2 or not all(map(is_tile, values)):
        raise place.refused(
            f" for {place.outputs[0].value}: expected tuples of two tiles, or of two numbers"
        )
    return "Zip", sequences.zip_, {}


def _bind_intersect(place: Place) -> Binding:
    items = []
    for each in place.inputs:
        parts = each.value.items if isinstance(each.value, TupleType) else (each.value,)
        if len(parts) > 2 or not all(map(is_integer, parts)):
            raise place.refused(f" for {each.value}: expected a number, or a tuple of two")
        items.append(len(parts))
    left, right = items
    name = f"Intersect_{''.join(map(str, place.read))}_{left}{right}"
    return name, partial(routing.intersect, place.read, (left, right)), {}


def _bind_initial(place: Place) -> Binding:
    operator, stream = place.operator, place.inputs[0]
    outer, *inner = stream.shape
    if len(inner) > memory.DIMENSIONS:
        raise place.refused(f" of rank {len(inner)}: expected at most {memory.DIMENSIONS}")
    parameters = {"rank": len(inner), "count": operator.count}
    parameters |= _size_parameters(inner)
    if operator.keep_length and isinstance(outer, int):
        parameters |= {"kept": outer - operator.count, "groups": outer}
    value = stream.value
    if isinstance(value, SelectorType):
        hits = np.atleast_1d(operator.value).tolist()
        parameters["control"] = sum(1 << hit for hit in set(hits))
    elif isinstance(value, TileType):
        parameters |= {"rows": _size(value.rows), "cols": _size(value.cols)}
        if value.dtype.kind in "iu":
            parameters["control"] = int(np.asarray(operator.value).reshape(-1)[0])
    elif isinstance(value, TupleType):
        raise place.refused(f" for {value}")
    return "Initial", sequences.initial, parameters


def _bind_flat_map(place: Place) -> Binding:
    split = place.operator.split
    name = type(split).__name__
    if hasattr(split, "hardware"):
        parts = stated(split)
        if not isinstance(parts, description.Parts):
            raise ProgramError(f"{place.name}: {name}.hardware returns {parts!r}: expected Parts")
        if split.rank:
            raise place.refused(f" for parts of rank {split.rank}: expected rank 0")
        return f"FlatMap_{name}", partial(sequences.flat_map_told, parts), {}
    if name not in sequences.SPLITS or not type(split).__module__.startswith("operators."):
        raise place.refused(f" for {name}")
    if isinstance(split, SplitTiles):
        tile = place.inputs[0].value
        assert isinstance(tile, TileType)
        across = _size(tile.cols) // split.cols
        if not across:
            raise place.refused(f" for {tile}: expected a constant number of columns, above 0")
        parameters = {"rows": split.rows, "cols": split.cols, "across": across}
        return f"FlatMap_{name}", sequences.split_tiles, parameters
    parameters = {"valid_only": int(split.valid_only)}
    return f"FlatMap_{name}", partial(sequences.flat_map, name), parameters


def _bind_promote(place: Place) -> Binding:
    dimensions = len(place.inputs[0].shape)
    inside = dimensions if place.operator.dimension is None else place.operator.dimension
    parameters = {"inside": inside, "outermost": int(inside == dimensions)}
    return "Promote", sequences.promote, parameters


def _bind_reshape(place: Place) -> Binding:
    operator, tile = place.operator, place.inputs[0].value
    outputs = len(place.read)
    if operator.dimension:
        parameters = {"chunk": operator.chunk, "dimension": operator.dimension}
        name = f"ReshapeOuter_{outputs}"
        return name, partial(sequences.reshape_outer, outputs), parameters
    rows, cols = (tile.rows, tile.cols) if isinstance(tile, TileType) else (0, 0)
    parameters = {"chunk": operator.chunk, "rows": _size(rows), "cols": _size(cols)}
    parameters["outermost"] = int(operator.outermost)
    return f"Reshape_{outputs}", partial(sequences.reshape, outputs), parameters


def broadcast(place: Place) -> Binding:
    return _by_count("Broadcast", sequences.broadcast, place.outputs)


def _bind_partition(place: Place) -> Binding:
    return _by_count("Partition", routing.partition, place.outputs, **_switched(place))


def _switched(place: Place) -> dict[str, int]:
    return {
        "rank": place.operator.rank,
        "switch": place.operator.switch_cycles,
        "bytes_0": place.bytes_of(place.inputs[0].value),
        "bandwidth": place.bandwidth,
    }


def _bind_parallelize(place: Place) -> Binding:
    if place.operator.switch_cycles > 1:
        raise place.refused(" with more than 1 switch cycle")
    rank = place.operator.rank
    return _by_count("Parallelize", routing.parallelize, place.outputs, rank=rank)


def _bind_reassemble(place: Place) -> Binding:
    streams = place.inputs[:-1]
    return _by_count("Reassemble", routing.reassemble, streams, **_switched(place))


def _bind_eager_merge(place: Place) -> Binding:
    producers = len(place.inputs)
    reads = "".join("ds"[port] for port in place.read)
    parameters = {"rank": place.operator.rank}
    build = partial(routing.eager_merge, producers, reads)
    return f"EagerMerge_{producers}_{reads}", build, parameters


def _bind_load(place: Place) -> Binding:
    tile = place.outputs[0].value
    assert isinstance(tile, TileType)
    # Without a reference, the view is within a dimension of size 1.
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
    parameters |= _size_parameters(dimensions)
    numbers = is_told(place.operator, place.outputs)
    name = f"Load_{inputs}" + ("_number" if numbers else "")
    return name, partial(memory.load, inputs, numbers=numbers), parameters


def _bind_source(place: Place) -> Binding:
    charges = int(not isinstance(place.operator, Metadata))
    return "Source", memory.source, {"charges": charges}


def _bind_map_pieces(place: Place) -> Binding:
    inputs, outputs = len(place.inputs), len(place.outputs)
    kind = type(place.operator).__name__
    return f"{kind}_{max(inputs, outputs)}", partial(pieces.map_, inputs, outputs), {}


def _bind_token_pieces(place: Place) -> Binding:
    parameters = {"rank": len(place.operator.inner), **_tile_sizes(place)}
    return "TokenPieces", pieces.token_store, parameters


def _bind_read_pieces(place: Place) -> Binding:
    operator = place.operator
    parameters = {"times": operator.times, **_tile_sizes(place)}
    parameters |= _nested_sizes(place, operator.inner, pieces.TOKEN_DIMENSIONS)
    return "ReadPieces", pieces.read, parameters


def _bind_load_pieces(place: Place) -> Binding:
    sizes = _nested_sizes(place, place.outputs[0].shape, pieces.DIMENSIONS)
    return "LoadPieces", pieces.load, {**_tile_sizes(place), **sizes}


def _bind_store_pieces(place: Place) -> Binding:
    return "StorePieces", pieces.store, {"top": len(place.inputs[0].shape) - 1}


def _tile_sizes(place: Place) -> dict[str, int]:
    tile = place.outputs[0].value
    assert isinstance(tile, TileType)
    return {"rows": _size(tile.rows), "cols": _size(tile.cols)}


def _nested_sizes(place: Place, sizes: Sequence[Any], most: int) -> dict[str, int]:
    if len(sizes) > most:
        raise place.refused(f" for rank {len(sizes)}: expected at most {most}")
    parameters = _size_parameters(sizes)
    if 0 in parameters.values():
        raise place.refused(" for streams that are empty")
    return {"rank": len(sizes), **parameters}


def _size_parameters(sizes: Sequence[Any]) -> dict[str, int]:
    """Return ``size_0`` and so on, from the innermost dimension to the outermost."""
    return {f"size_{at}": _size(size) for at, size in enumerate(reversed(sizes))}


def _simple(module: str, build: Callable[[], Any], *attributes: str) -> Callable[[Place], Binding]:
    def bind(place: Place) -> Binding:
        return module, build, {name: getattr(place.operator, name) for name in attributes}

    return bind


def _by_count(
    name: str, build: Callable[[int], Any], ports: Sequence[Any], **parameters: int
) -> Binding:
    return f"{name}_{len(ports)}", partial(build, len(ports)), parameters


_BINDINGS: Final[dict[type[Operator], Callable[[Place], Binding]]] = {
    Accum: _bind_fold,
    AccumPieces: _simple("AccumPieces", pieces.accumulate),
    BigTile: _simple("BigTile", pieces.big_tile),
    Broadcast: broadcast,
    BroadcastPieces: _bind_map_pieces,
    Bufferize: _simple("Bufferize", memory.bufferize, "rank"),
    CacheReadAddresses: _simple("CacheReadAddresses", sequences.read_addresses, "stride"),
    Consumer: _simple("Consumer", sequences.consumer),
    EagerMerge: _bind_eager_merge,
    Expand: _simple("Expand", sequences.expand, "rank"),
    ExpertAddresses: _simple("ExpertAddresses", sequences.expert_addresses, "tiles"),
    FilterLastTile: _simple("FilterLastTile", sequences.filter_last),
    FlatMap: _bind_flat_map,
    Flatten: _simple("Flatten", sequences.flatten, "inner", "outer"),
    Initial: _bind_initial,
    Intersect: _bind_intersect,
    LinearOffChipLoad: _bind_load,
    LinearOffChipStore: _simple("Store", memory.store),
    LoadPieces: _bind_load_pieces,
    Map: _bind_map,
    MapPieces: _bind_map_pieces,
    Metadata: _bind_source,
    Parallelize: _bind_parallelize,
    Partition: _bind_partition,
    Promote: _bind_promote,
    PromotePieces: _simple("PromotePieces", pieces.promote, "level"),
    RaggedIntegers: _bind_source,
    RandomOffChipLoad: _bind_load,
    RandomOffChipStore: lambda place: _by_count("Store", memory.random_store, place.read),
    ReadPieces: _bind_read_pieces,
    Reassemble: _bind_reassemble,
    Repeat: _simple("Repeat", sequences.repeat, "count"),
    RepeatPieces: _simple("RepeatPieces", pieces.repeat, "times"),
    Reshape: _bind_reshape,
    Scan: _bind_fold,
    Scatter: _bind_scatter,
    Selectors: _bind_source,
    StorePieces: _bind_store_pieces,
    Streamify: _bind_streamify,
    TokenPieces: _bind_token_pieces,
    Zip: _bind_zip,
}
"""The binding of each kind of operator."""


def binding_of(place: Place) -> Binding:
    """Return the module of an operator. Its class may provide one in a method ``hardware``."""
    if hasattr(place.operator, "hardware"):
        match hardware := stated(place.operator, place):
            case (str() as module, build, dict() as parameters) if callable(build):
                return module, build, parameters
        raise ProgramError(
            f"{place.name}: {type(place.operator).__name__}.hardware returns {hardware!r}: "
            "expected a name, a builder of the module, and a dictionary of parameters"
        )
    bind = _BINDINGS.get(type(place.operator))
    if bind is None:
        raise place.refused("")
    return bind(place)
