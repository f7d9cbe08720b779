"""What hardware costs on an FPGA: Yosys synthesises it for a Lattice ECP5, nextpnr places it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fabric import ConfigurationError
from operators.rtl import tools
from operators.rtl.netlist import Netlist
from operators.rtl.verilog import channel_module

__all__ = ["Cost", "ModuleCost", "cost_of"]

_LUTS: Final = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "PFUMX": 0, "L6MUX21": 0}
"""Four-input tables that a cell of the ECP5 takes."""

_MOST: Final = {
    "luts": (83_640, "look-up tables"),
    "flip_flops": (83_640, "flip-flops"),
    "multipliers": (156, "multipliers"),
    "memories": (208, "block RAMs"),
}
"""What the largest ECP5 has, an LFE5U-85F."""

_WHOLE: Final = "fabric_top"


class ModuleCost(NamedTuple):
    """What one module takes.

    Its parameters are ports, so nothing is folded into it; they are constants in the whole program.

    Attributes:
        module: its name; ``fabric_top`` is the whole program.
        instances: in the netlist.
        luts: look-up tables of four inputs, those of carry chains and small memories included.
        flip_flops: registers of one bit.
        multipliers: DSP blocks of 18 x 18 bits.
        memories: block RAMs.
        clock_mhz: between registers at all ports, placed and routed; None where it is not placed.
    """

    module: str
    instances: int
    luts: int
    flip_flops: int
    multipliers: int
    memories: int
    clock_mhz: float | None = None


_TITLES: Final = ("module", "instances", "LUTs", "flip-flops", "multipliers", "block RAMs", "MHz")


@dataclass(frozen=True)
class Cost:
    """What each module takes, the smallest first, and the whole program where it is placed."""

    modules: tuple[ModuleCost, ...]

    def __str__(self) -> str:
        """Return a table."""
        rows = [_TITLES, *(_cells(each) for each in self.modules)]
        if all(each.clock_mhz is None for each in self.modules):
            rows = [row[:-1] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            " ".join(
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )

    def as_json(self) -> list[dict[str, object]]:
        """Return one object a module."""
        return [dict(each._asdict()) for each in self.modules]


def _cells(cost: ModuleCost) -> tuple[str, ...]:
    name, *numbers, clock_mhz = cost
    return (name, *(f"{n:,}" for n in numbers), "" if clock_mhz is None else f"{clock_mhz:.1f}")


def cost_of(netlist: Netlist, folder: Path, *, places: bool) -> Cost:
    """Synthesise the modules that were written into ``folder``.

    With ``places`` also the whole program, and nextpnr places and routes all of them.

    Raises:
        ConfigurationError: the whole does not fit into an ECP5.
    """
    instances: dict[str, int] = {}
    for channel in netlist.channels:
        hops = max(channel.forward_cycles, channel.backward_cycles)
        name, _, _ = channel_module(channel.depth, hops)
        instances[name] = instances.get(name, 0) + 1
    for unit in netlist.units:
        instances[unit.module] = instances.get(unit.module, 0) + 1
    found = []
    sources = "modules.sv top.sv" if places else "modules.sv"
    # The whole is the first that may not fit, and what does not fit is not worth the wait.
    for module, count in {**({_WHOLE: 1} if places else {}), **instances}.items():
        file = f"cost-{module}.json"
        tools.yosys(
            folder,
            f"read_verilog -sv {sources}; synth_ecp5 -top {module}; tee -q -o {file} stat -json; "
            f"write_json synthesised-{module}.json",
        )
        cells = json.loads((folder / file).read_text())["design"]["num_cells_by_type"]
        found.append(_cost(module, count, cells))
        if places:
            _check_room(found[-1])
    if places:
        found = [
            each._replace(clock_mhz=_clock_mhz(folder, each.module, sources)) for each in found
        ]
    return Cost(tuple(sorted(found, key=lambda each: (each.luts, each.module))))


def _check_room(cost: ModuleCost) -> None:
    for field, (most, what) in _MOST.items():
        count = getattr(cost, field)
        if count > most:
            raise ConfigurationError(
                f"an ECP5 has no room for {cost.module} with {count:,} {what}: "
                f"expected at most {most:,}, those of the largest one"
            )


def _cost(module: str, instances: int, cells: Mapping[str, int]) -> ModuleCost:
    luts = sum(_LUTS.get(cell, 0) * count for cell, count in cells.items())
    multipliers = cells.get("MULT18X18D", 0)
    return ModuleCost(
        module, instances, luts, cells.get("TRELLIS_FF", 0), multipliers, cells.get("DP16KD", 0)
    )


def _clock_mhz(folder: Path, module: str, sources: str) -> float | None:
    """Place and route a module between registers; return its clock, None without a path."""
    netlist = json.loads((folder / f"synthesised-{module}.json").read_text())["modules"][module]
    ports = {
        name: (port["direction"], len(port["bits"])) for name, port in netlist["ports"].items()
    }
    (folder / f"wrapped-{module}.sv").write_text(_harness(module, ports))
    tools.yosys(
        folder,
        f"read_verilog -sv {sources} wrapped-{module}.sv; "
        f"synth_ecp5 -top harness -json wrapped-{module}.json",
    )
    report = f"report-{module}.json"
    options = ["--json", f"wrapped-{module}.json", "--report", report]
    # With its usual router, or after a goal that is far away, the whole is routed for longer than
    # anybody waits.
    goal = ["--freq", "15", "--router", "router2"] if module == _WHOLE else ["--freq", "100"]
    tools.nextpnr(folder, [*options, "--timing-allow-fail", *goal, "--seed", "1"])
    clocks = json.loads((folder / report).read_text())["fmax"]
    return min((float(each["achieved"]) for each in clocks.values()), default=None)


def _harness(module: str, ports: Mapping[str, tuple[str, int]]) -> str:
    """Return a module of four pins: what goes in comes from a chain of registers, and so out.

    So all paths are between registers, however many ports there are.
    """
    ends = [f".{name}({name})" for name in ("clk", "rst") if name in ports]
    bits = {"input": 0, "output": 0}
    wires = {"input": "given", "output": "said"}
    for name, (direction, width) in sorted(ports.items()):
        if name not in ("clk", "rst"):
            ends.append(f".{name}({wires[direction]}[{bits[direction]} +: {width}])")
            bits[direction] += width
    given, said = bits["input"], bits["output"]
    return f"""\
// Between registers: {module}.
module harness (input logic clk, rst, bit_in, output logic bit_out);
  logic [{given - 1}:0] given;
  logic [{said - 1}:0] said, kept, chain;
  {module} dut ({", ".join(ends)});
  always_ff @(posedge clk) begin
    given <= {{given, bit_in}};
    kept <= said;
    chain <= {{chain, 1'b0}} ^ kept;
  end
  assign bit_out = chain[{said - 1}];
endmodule
"""
