from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fabric import FabricError, Hardware, Program, Tile, TileType
from fabric.extend import ChannelDescription
from fabric.graph.wiring.program import hardware_scope
from operators import Exp, Function, LinearOffChipLoad, LinearOffChipStore, Map
from operators.rtl import blocks, description, sequences
from operators.rtl.hardware import design
from operators.rtl.netlist import Netlist
from operators.rtl.verilog import modules_of
from tests.programs.loading import program

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


@dataclass(frozen=True)
class Größe(Function):  # noqa: PLC2401 - Python lets a class be called so
    work: int

    def infer(self, x: TileType) -> TileType:
        return x

    def flops(self, x: Tile) -> int:
        return self.work * x.rows * x.cols

    def apply(self, x: Tile) -> Tile:
        return x

    def hardware(self) -> description.Function:
        return description.Function(1, description.sizes_of)


def netlist_of(*functions: Function, name: str | None = None) -> Netlist:
    with hardware_scope(WIRES), Program("own", mode="timing") as built:
        stream = LinearOffChipLoad(np.zeros((4, 4)), tile=(2, 4))()
        for function in functions:
            stream = Map(function, name=name)(stream)
        LinearOffChipStore("y")(stream)
    return design(built).netlist


def test_equal_hardware_shares_a_module() -> None:
    found = netlist_of(Größe(3), Größe(9), Größe(3))
    texts = modules_of(found)

    names = [unit.module for unit in found.units[1:-1]]
    assert names == ["Own_Map_Gr__e", "Own_Map_Gr__e_2", "Own_Map_Gr__e"]
    assert {"Own_Map_Gr__e", "Own_Map_Gr__e_2"} <= set(texts.ports)


def test_class_named_as_the_library_s_gets_its_own_module() -> None:
    class Own(Größe):
        pass

    Own.__name__ = "Exp"
    found = netlist_of(Own(3), Exp())

    assert [unit.module for unit in found.units[1:-1]] == ["Own_Map_Exp", "Map_Exp"]


@pytest.mark.parametrize("name", ["a -> b", "module", "a.0", "größe", "x -> flatten_1.0"])
def test_channels_join_operators_of_any_name(name: str) -> None:
    load, unit, store = netlist_of(Exp(), name=name).units

    assert unit.name == name
    assert (load.outputs, unit.inputs, unit.outputs, store.inputs) == ([0], [0], [1], [1])


def raises() -> Any:
    raise KeyError("no")


def limited() -> blocks.Unit:
    unit = blocks.Unit(1, 1)
    unit.parameter("limit", 3)
    return unit


@pytest.mark.parametrize(
    ("hardware", "message"),
    [
        (lambda *_: 1, r"hardware returns 1: expected a name, a builder of the module, and a"),
        (lambda *_: ("A", 2, {}), r"hardware returns \('A', 2, \{\}\): expected a name"),
        (lambda *_: raises(), "EverySecond.hardware raised KeyError: 'no'"),
        (lambda *_: ("A", raises, {}), "the hardware of every_second_1 raised KeyError: 'no'"),
        (lambda *_: ("A", limited, {"limit": 8}), "every_second_1: limit is 8: expected 0 to 7, "),
        (lambda *_: ("A", int, {}), "every_second_1: its hardware is 0: expected a Unit"),
        (lambda *_: ("A", sequences.zip_, {}), "its hardware are 2 and 1: expected 1 and 1, those"),
        (lambda *_: ("A", lambda: blocks.Unit(0, 1), {}), "its hardware are 0 and 1: expected 1 a"),
    ],
)
def test_wrong_hardware_is_reported_at_its_operator(
    hardware: Callable[..., object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = program("own_operator", "wires.toml")
    operator = next(node.operator for node in built.nodes if node.name == "every_second_1")
    monkeypatch.setattr(type(operator), "hardware", hardware)

    with pytest.raises(FabricError, match=message):
        modules_of(design(built).netlist)


def test_module_named_as_a_keyword_is_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    built = program("own_operator", "wires.toml")
    operator = next(node.operator for node in built.nodes if node.name == "every_second_1")
    _, build, _ = operator.hardware(None)  # type: ignore[attr-defined]
    for name, expected in (("module", "Own_module"), ("Flatten", "Own_Flatten")):
        monkeypatch.setattr(type(operator), "hardware", lambda *_, name=name: (name, build, {}))
        units = {unit.name: unit for unit in design(built).netlist.units}

        assert units["every_second_1"].module == expected
