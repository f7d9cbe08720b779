"""What the modules of a netlist cost on an FPGA: Yosys synthesises each for a Lattice ECP5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from operators.rtl import tools
from operators.rtl.netlist import Netlist
from operators.rtl.verilog import channel_module

__all__ = ["Cost", "ModuleCost", "cost_of"]

_LUTS: Final = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "PFUMX": 0, "L6MUX21": 0}
"""Four-input tables that a cell of the ECP5 takes."""


class ModuleCost(NamedTuple):
    """What one module takes; its parameters are ports, so nothing is folded into it.

    Attributes:
        module: its name.
        instances: in the netlist.
        luts: look-up tables of four inputs, those of carry chains and small memories included.
        flip_flops: registers of one bit.
        multipliers: DSP blocks of 18 x 18 bits.
        memories: block RAMs.
    """

    module: str
    instances: int
    luts: int
    flip_flops: int
    multipliers: int
    memories: int


@dataclass(frozen=True)
class Cost:
    """What each module takes, the smallest first."""

    modules: tuple[ModuleCost, ...]

    def __str__(self) -> str:
        """Return a table."""
        width = max(len(each.module) for each in self.modules)
        titles = (
            "module".ljust(width),
            "instances",
            "   LUTs",
            " flip-flops",
            " multipliers",
            " block RAMs",
        )
        lines = [" ".join(titles)]
        for name, *numbers in self.modules:
            cells = [f"{n:{len(title)},}" for n, title in zip(numbers, titles[1:], strict=True)]
            lines.append(" ".join([name.ljust(width), *cells]))
        return "\n".join(lines)

    def as_json(self) -> list[dict[str, object]]:
        """Return one object a module."""
        return [dict(each._asdict()) for each in self.modules]


def cost_of(netlist: Netlist, folder: Path) -> Cost:
    """Synthesise the modules that were written into ``folder``."""
    instances: dict[str, int] = {}
    for channel in netlist.channels:
        hops = max(channel.forward_cycles, channel.backward_cycles)
        name, _, _ = channel_module(channel.depth, hops)
        instances[name] = instances.get(name, 0) + 1
    for unit in netlist.units:
        instances[unit.module] = instances.get(unit.module, 0) + 1
    found = []
    for module, count in instances.items():
        file = f"cost-{module}.json"
        tools.yosys(
            folder,
            f"read_verilog -sv modules.sv; synth_ecp5 -top {module}; tee -q -o {file} stat -json",
        )
        cells = json.loads((folder / file).read_text())["design"]["num_cells_by_type"]
        found.append(_cost(module, count, cells))
    return Cost(tuple(sorted(found, key=lambda each: (each.luts, each.module))))


def _cost(module: str, instances: int, cells: Mapping[str, int]) -> ModuleCost:
    luts = sum(_LUTS.get(cell, 0) * count for cell, count in cells.items())
    multipliers = cells.get("MULT18X18D", 0)
    return ModuleCost(
        module, instances, luts, cells.get("TRELLIS_FF", 0), multipliers, cells.get("DP16KD", 0)
    )
