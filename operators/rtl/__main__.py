"""``python -m operators.rtl``: the cost of each kind of module, over its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

# Any: amaranth has no types.
from typing import Any, Final

import click
from amaranth import Module, Signal
from typing_extensions import override

from fabric import ConfigurationError, FabricError
from operators.rtl import compute, description, memory, routing, sequences, tools
from operators.rtl.blocks import Unit, channel
from operators.rtl.netlist import Channel, Instance, Netlist
from operators.rtl.tools import cost_of
from operators.rtl.verilog import channel_module, modules_of

_WAYS: Final = (2, 4, 8, 16)
_DEPTHS: Final = (2, 4, 8, 16, 32, 64)
_KEPT: Final = ("level", "bare", "empty", "control")
"""The fields of a token except the sizes of a tile."""

_SIZE: Final = {"rows": 16, "cols": 16, "valid_rows": 16, "valid_cols": 16, "in_memory": 0}

Build = Callable[[], Unit]


class _Part(Unit):
    """A module around another one, which has some ports fewer."""

    def __init__(self, inner: Any, outer: Any, ports: Sequence[Any]) -> None:
        super().__init__(0, 0)
        self.m.submodules.inner = inner
        self.m.submodules.outer = outer
        self._ports: Final = list(ports)

    @property
    @override
    def ports(self) -> list[Any]:
        return self._ports


def _without_sizes(outer: Any, ports: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Return ports without the sizes of tiles; ports in ``given`` get sizes of 16 x 16."""
    found = []
    for number, port in enumerate(ports):
        if isinstance(port, Signal):
            found.append(port)
            continue
        is_given = any(port is each for each in given)
        for name in _KEPT:
            field = getattr(port, name)
            wire = Signal(len(field), name=f"port{number}_{name}")
            outer.d.comb += field.eq(wire) if is_given else wire.eq(field)
            found.append(wire)
        if is_given:
            outer.d.comb += [getattr(port, name).eq(size) for name, size in _SIZE.items()]
    return found


def _tied(build: Build, values: dict[str, int], *, is_static: bool) -> Unit:
    """Return a module with constants for parameters and, if ``is_static``, for sizes."""
    inner, outer = build(), Module()
    for name, port in inner.parameters.items():
        outer.d.comb += port.eq(values.get(name, 0))
    inner.parameters.clear()
    given = [each.token for each in inner.inputs]
    ports = _without_sizes(outer, inner.ports, given) if is_static else inner.ports
    return _Part(inner.m, outer, ports)


def _tied_channel(*, has_sizes: bool, has_credits: bool) -> Unit:
    """Return a channel of two slots and one hop, optionally with sizes and credits."""
    inner, (depth, forward, backward, ready, send, sent, *others) = channel(2, 1)
    outer = Module()
    outer.d.comb += [depth.eq(2), forward.eq(1), backward.eq(1)]
    ports = [*([ready] if has_credits else []), send, sent, *others]
    return _Part(inner, outer, ports if has_sizes else _without_sizes(outer, ports, [sent]))


_TIED: Final[dict[str, tuple[Build, dict[str, int]]]] = {
    "Flatten": (sequences.flatten, {"inner": 0, "outer": 1}),
    "Broadcast_2": (partial(sequences.broadcast, 2), {}),
    "Partition_2": (partial(routing.partition, 2), {"rank": 1, "bytes_0": 2, "bandwidth": 64}),
    "Reassemble_2": (partial(routing.reassemble, 2), {"rank": 1, "bytes_0": 2, "bandwidth": 64}),
    "Accum_RetileRow": (
        partial(compute.fold, compute.ACCUMULATIONS["RetileRow"], [1], every=False),
        {"rank": 1, "bytes_0": 2, "bandwidth": 64, "rate": 4096, "cols": 16},
    ),
    "Map_Matmul": (
        partial(compute.map_, compute.FUNCTIONS["Matmul"], [1, 1]),
        {"bytes_0": 2, "bytes_1": 2, "bandwidth": 64, "rate": 4096, "result_bytes": 2},
    ),
}
"""Modules that are also built with constants for parameters, as in programs of 16 x 16 tiles."""


def builders() -> dict[str, Build]:
    """Return the builder of each kind of module except channels, by name; 2 to 16 ports."""
    found: dict[str, Build] = {
        "Source": memory.source,
        "Store": memory.store,
        "Load_0": partial(memory.load, 0),
        "Load_1": partial(memory.load, 1),
        "Load_1_number": partial(memory.load, 1, numbers=True),
        **{f"Store_{number}": partial(memory.random_store, number) for number in (0, 1)},
        "Bufferize": memory.bufferize,
        **{f"Streamify_{number}": partial(memory.streamify, number) for number in (1, 2)},
        **{f"Scatter_{banks}": partial(memory.scatter, banks) for banks in (1, 2, 4)},
        "Zip": sequences.zip_,
        "Zip_numbers": routing.zip_numbers,
        "Intersect_01_11": partial(routing.intersect, (0, 1), (1, 1)),
        "Intersect_12_22": partial(routing.intersect, (1, 2), (2, 2)),
        "Initial": sequences.initial,
        "Flatten": sequences.flatten,
        "Promote": sequences.promote,
        "Repeat": sequences.repeat,
        "Expand": sequences.expand,
        "Consumer": sequences.consumer,
        **{f"Reshape_{number}": partial(sequences.reshape, number) for number in (1, 2)},
        "ReshapeOuter_1": partial(sequences.reshape_outer, 1),
        "FlatMap_SplitRows": partial(sequences.flat_map, "SplitRows"),
        "FlatMap_SplitCols": partial(sequences.flat_map, "SplitCols"),
        "FlatMap_SplitTiles": sequences.split_tiles,
        "FlatMap_told": partial(sequences.flat_map_told, description.Parts()),
        "CacheReadAddresses": sequences.read_addresses,
        "FilterLastTile": sequences.filter_last,
        "ExpertAddresses": sequences.expert_addresses,
    }
    for name, function in compute.FUNCTIONS.items():
        found[f"Map_{name}"] = partial(compute.map_, function, [1] * function.operands)
    for kind, every in (("Accum", False), ("Scan", True)):
        for name, each in compute.ACCUMULATIONS.items():
            items = [1] * each.operands
            found[f"{kind}_{name}"] = partial(compute.fold, each, items, every=every)
    for ways in _WAYS:
        found[f"Broadcast_{ways}"] = partial(sequences.broadcast, ways)
        found[f"Partition_{ways}"] = partial(routing.partition, ways)
        found[f"Parallelize_{ways}"] = partial(routing.parallelize, ways)
        found[f"EagerMerge_{ways}_ds"] = partial(routing.eager_merge, ways, "ds")
        found[f"Reassemble_{ways}"] = partial(routing.reassemble, ways)
    for name, (build, values) in _TIED.items():
        found[f"{name}_tied"] = partial(_tied, build, values, is_static=False)
        found[f"{name}_static"] = partial(_tied, build, values, is_static=True)
    for outer in (2, 3):
        values = {"inner": 0, "outer": outer}
        found[f"Flatten_0_{outer}_tied"] = partial(
            _tied, sequences.flatten, values, is_static=False
        )
    found["Channel_2_1_tied"] = partial(_tied_channel, has_sizes=True, has_credits=True)
    found["Channel_2_1_no_credits"] = partial(_tied_channel, has_sizes=True, has_credits=False)
    found["Channel_2_1_static"] = partial(_tied_channel, has_sizes=False, has_credits=True)
    return found


@click.command()
@click.argument("modules", metavar="[MODULE]...", nargs=-1)
@click.option("-o", "output", metavar="DIR", required=True, type=click.Path(path_type=Path))
def main(modules: tuple[str, ...], output: Path) -> None:
    """Synthesise each kind of module with Yosys for an ECP5, or the MODULEs, into DIR.

    With ``_tied`` the parameters of a module are constants, and with ``_static`` the sizes of its
    tiles, too. Exit status: 2 for usage and configuration.
    """
    depths = {channel_module(depth, 1)[0]: depth for depth in _DEPTHS}
    built = builders()
    names = modules or (*depths, *built)
    try:
        for each in names:
            if each not in depths and each not in built:
                expected = ", ".join([*depths, *built])
                raise ConfigurationError(f"{each} is not a module: expected one of {expected}")
        netlist = Netlist(
            [Instance(each, each, built[each], {}, [], []) for each in names if each in built],
            [Channel(each, 0, 0, depths[each], 1, 1) for each in names if each in depths],
        )
        output.mkdir(parents=True, exist_ok=True)
        tools.verilog_of(output, modules_of(netlist).rtlil)
        click.echo(cost_of(netlist, output, places=False))
    except FabricError as error:
        click.echo(f"operators.rtl: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
