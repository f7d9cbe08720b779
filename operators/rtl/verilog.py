"""SystemVerilog of a netlist: its modules, the top that joins them, and a testbench."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from fabric import ProgramError
from operators.rtl.blocks import Unit, building, channel
from operators.rtl.netlist import Instance, Netlist
from operators.rtl.system_verilog import module_text, types_text, wrapped

_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_]")

_OFF_CHIP: Final = """\
/* verilator lint_off UNOPTFLAT */ // An answer in the cycle of its request starts no request.
{}/* verilator lint_on UNOPTFLAT */
"""


class Written(NamedTuple):
    """The SystemVerilog of all modules of a netlist, and the ports of each module.

    A module without registers has no clock among its ports.
    """

    text: str
    ports: dict[str, frozenset[str]]


def modules_of(netlist: Netlist) -> Written:
    parts: dict[str, tuple[Any, Sequence[Any], str]] = {}
    built: dict[str, Unit] = {}
    with building(netlist.widths._replace(parameters=netlist.parameter_bits())):
        for each in netlist.channels:
            if each.module not in parts:
                comment = inspect.getdoc(channel) or ""
                parts[each.module] = *channel(each.slots, each.hops), comment
        for unit in netlist.units:
            if unit.module not in built:
                built[unit.module] = unit.build()
                comment = inspect.getdoc(getattr(unit.build, "func", unit.build)) or ""
                parts[unit.module] = built[unit.module].m, built[unit.module].ports, comment
        texts, ports = [types_text()], {}
        for name, (module, signals, comment) in sorted(parts.items()):
            text, ports[name] = module_text(name, module, signals, comment)
            texts.append(_OFF_CHIP.format(text) if "request" in ports[name] else text)
    for unit in netlist.units:
        _check_room(unit, built[unit.module])
    return Written("\n".join(texts), ports)


def _check_room(instance: Instance, unit: Unit) -> None:
    for name, port in unit.parameters.items():
        value, most = instance.parameters.get(name, 0), (1 << len(port)) - 1
        if not 0 <= value <= most:
            raise ProgramError(
                f"{instance.name}: {name} is {value:,}: expected 0 to {most:,}, "
                f"which its hardware {instance.module} has room for"
            )


def _name(number: int, name: str) -> str:
    return f"u{number}_{_IDENTIFIER.sub('_', name)}"


def top(netlist: Netlist, written: Written) -> str:
    clients = [each for each in netlist.units if each.latencies_cycles is not None]
    sources = [each for each in netlist.units if each.given is not None]
    bits, level_bits = netlist.widths.bits, netlist.widths.level
    count = {
        "channels": len(netlist.channels),
        "units": len(netlist.units),
        "clients": max(1, len(clients)),
        "sources": max(1, len(sources)),
    }
    lines = [
        "// Channels and units of a program, joined.",
        "/* verilator lint_off DECLFILENAME */ // The folder names the program.",
        "module fabric_top (",
        "  input  logic clk, rst,",
        f"  output logic [{count['clients'] - 1}:0] request,",
        f"  input  logic [{count['clients'] - 1}:0] answer,",
        "  /* verilator lint_off UNUSEDSIGNAL */ // Only sources use these.",
        f"  input  logic [{count['sources'] - 1}:0] given_valid, given_last,",
        f"  input  logic [{count['sources'] * bits - 1}:0] given_token,",
        "  /* verilator lint_on UNUSEDSIGNAL */",
        f"  output logic [{count['sources'] - 1}:0] given_next,",
        f"  output logic [{count['channels'] - 1}:0] sent, sent_bare, taken,",
        f"  output logic [{count['channels'] * level_bits - 1}:0] sent_level,",
        f"  output logic [{count['units'] - 1}:0] done, fault",
        ");",
        *([] if clients else ["  assign request = 0;"]),
        *([] if sources else ["  assign given_next = 0;"]),
    ]
    lines += _joined_channels(netlist, written)
    lines += _joined_units(netlist, written)
    return "\n".join([*(part for line in lines for part in wrapped(line)), "endmodule", ""])


def _joined_channels(netlist: Netlist, written: Written) -> Iterator[str]:
    for number, each in enumerate(netlist.channels):
        wire = f"c{number}"
        yield f"  // {each.name}"
        yield f"  logic {wire}_ready, {wire}_valid, {wire}_take, {wire}_ended;"
        if not netlist.widths.registers:
            yield f"  logic {wire}_final;"
        yield f"  token_t {wire}_sent, {wire}_token;"
        ends = {
            "p_depth": each.depth,
            "p_forward": each.forward_cycles,
            "p_backward": each.backward_cycles,
            "in_ready": f"{wire}_ready",
            "in_valid": f"sent[{number}]",
            "in_token": f"{wire}_sent",
            "in_end": f"done[{each.producer}]",
            "out_valid": f"{wire}_valid",
            "out_token": f"{wire}_token",
            "out_take": f"{wire}_take",
            "out_end": f"{wire}_ended",
            "out_final": f"{wire}_final",
        }
        yield f"  {each.module} {wire} ({_connected(ends, written.ports[each.module])});"
        bits = netlist.widths.level
        yield f"  assign taken[{number}] = {wire}_take;"
        yield f"  assign sent_level[{number * bits} +: {bits}] = {wire}_sent.level;"
        yield f"  assign sent_bare[{number}] = {wire}_sent.bare;"


def _joined_units(netlist: Netlist, written: Written) -> Iterator[str]:
    client = source = 0
    for number, unit in enumerate(netlist.units):
        ends: dict[str, object] = {"done": f"done[{number}]", "fault": f"fault[{number}]"}
        for port, each in enumerate(unit.inputs):
            ends |= {
                f"in{port}_valid": f"c{each}_valid",
                f"in{port}_token": f"c{each}_token",
                f"in{port}_end": f"c{each}_ended",
                f"in{port}_final": f"c{each}_final",
                f"in{port}_take": f"c{each}_take",
            }
        for port, each in enumerate(unit.outputs):
            ends |= {
                f"out{port}_ready": f"c{each}_ready",
                f"out{port}_valid": f"sent[{each}]",
                f"out{port}_token": f"c{each}_sent",
            }
        ends |= {
            name: unit.parameters.get(name[2:], 0)
            for name in written.ports[unit.module]
            if name.startswith("p_")
        }
        if unit.latencies_cycles is not None:
            ends |= {"request": f"request[{client}]", "answer": f"answer[{client}]"}
            client += 1
        if unit.given is not None:
            ends |= {
                f"given_{what}": f"given_{what}[{source}]" for what in ("valid", "last", "next")
            }
            bits = netlist.widths.bits
            ends["given_token"] = f"given_token[{source * bits} +: {bits}]"
            source += 1
        module = unit.module
        yield f"  {module} {_name(number, unit.name)} ({_connected(ends, written.ports[module])});"


def _connected(ends: dict[str, object], ports: frozenset[str]) -> str:
    ends = {"clk": "clk", "rst": "rst", **ends}
    return ", ".join(f".{name}({ends[name]})" for name in sorted(ports))


def testbench(netlist: Netlist, cycles: int) -> tuple[str, str, str]:
    """Return a testbench that runs for ``cycles`` cycles, and two files that it reads.

    It answers the bursts of off-chip memory with the netlist's latencies, sends the tokens of
    sources, and logs every sent and taken element with its cycle.
    """
    clients = [unit.latencies_cycles for unit in netlist.units if unit.latencies_cycles is not None]
    sources = [unit.given for unit in netlist.units if unit.given is not None]
    bounds = {"clients": max(1, len(clients)), "sources": max(1, len(sources))}
    latencies = [cycles for client in clients for cycles in client] or [0]
    tokens = [netlist.widths.packed(**fields) for source in sources for fields in source] or [0]
    bits, level_bits = netlist.widths.bits, netlist.widths.level
    starts = "\n".join(
        f"  localparam int {name} [{len(parts) + 1}] = '{{{', '.join(map(str, _starts(parts)))}}};"
        for name, parts in (("CLIENT_START", clients or [[]]), ("GIVEN_START", sources or [[]]))
    )
    channels, units = len(netlist.channels), len(netlist.units)
    text = f"""\
// Drives fabric_top: off-chip memory, sources, and a log of transfers.
module testbench (input logic clk, rst, output logic finished);
  localparam CHANNELS = {channels}, UNITS = {units};
  localparam CLIENTS = {bounds["clients"]}, SOURCES = {bounds["sources"]};
  logic [CLIENTS-1:0] request;
  /* verilator lint_off UNOPTFLAT */ // An answer in the cycle of its request starts no request.
  logic [CLIENTS-1:0] answer;
  /* verilator lint_on UNOPTFLAT */
  logic [SOURCES-1:0] given_valid, given_last, given_next;
  logic [SOURCES*{bits}-1:0] given_token;
  logic [CHANNELS-1:0] sent, sent_bare, taken;
  logic [CHANNELS*{level_bits}-1:0] sent_level;
  /* verilator lint_off UNUSEDSIGNAL */ // To look at in a waveform.
  logic [UNITS-1:0] done;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [UNITS-1:0] fault;
  fabric_top dut (.*);

  logic [31:0] latency [0:{len(latencies) - 1}];
  logic [{bits - 1}:0] tokens [0:{len(tokens) - 1}];
{starts}
  int client_at [CLIENTS], left [CLIENTS], given_at [SOURCES];
  longint cycle;
  int log;

  initial begin
    $readmemh("latencies.hex", latency);
    $readmemh("tokens.hex", tokens);
    log = $fopen("transfers.log", "w");
  end

  always_comb begin
    // A tile that was fetched ahead is answered in the cycle of its request.
    for (int i = 0; i < CLIENTS; i++)
      answer[i] = left[i] == 1
        || (request[i] && client_at[i] < CLIENT_START[i + 1] && latency[client_at[i]] == 0);
    for (int i = 0; i < SOURCES; i++) begin
      given_valid[i] = given_at[i] < GIVEN_START[i + 1];
      given_last[i] = given_at[i] + 1 == GIVEN_START[i + 1];
      given_token[i*{bits} +: {bits}] = given_valid[i] ? tokens[given_at[i]] : '0;
    end
  end

  assign finished = cycle >= {cycles};

  always_ff @(posedge clk) if (rst) begin
    cycle <= 0;
    for (int i = 0; i < CLIENTS; i++) begin client_at[i] <= CLIENT_START[i]; left[i] <= 0; end
    for (int i = 0; i < SOURCES; i++) given_at[i] <= GIVEN_START[i];
  end else begin
    cycle <= cycle + 1;
    for (int i = 0; i < CLIENTS; i++) begin
      if (request[i] && client_at[i] < CLIENT_START[i + 1]) begin
        left[i] <= latency[client_at[i]];
        client_at[i] <= client_at[i] + 1;
      end else if (left[i] != 0) left[i] <= left[i] - 1;
    end
    for (int i = 0; i < SOURCES; i++) if (given_next[i]) given_at[i] <= given_at[i] + 1;
    for (int i = 0; i < CHANNELS; i++) begin
      if (sent[i]) $fwrite(log, "0 %0d %0d %0d\\n", i, cycle,
        sent_bare[i] ? -1 - int'(sent_level[i*{level_bits} +: {level_bits}])
                     : int'(sent_level[i*{level_bits} +: {level_bits}]));
      if (taken[i]) $fwrite(log, "1 %0d %0d 0\\n", i, cycle);
    end
    for (int i = 0; i < UNITS; i++) if (fault[i]) $fwrite(log, "2 %0d %0d 0\\n", i, cycle);
    if (finished) $fclose(log);
  end
endmodule
"""
    hexadecimal = "\n".join(f"{each:x}" for each in latencies) + "\n"
    return text, hexadecimal, "\n".join(f"{each:x}" for each in tokens) + "\n"


def _starts(parts: Sequence[Sequence[object]]) -> list[int]:
    """Return the index of each part in the concatenation of all, and the total length."""
    return list(accumulate(map(len, parts), initial=0))
