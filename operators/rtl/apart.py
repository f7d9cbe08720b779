"""Simulation of many units: each kind is compiled once, and a loop copies signals between them.

Verilator's compile time grows with the instances in a top module, to minutes for thousands. The
outputs of a channel are registers, so no signal passes a channel in the cycle of its arrival.
Therefore the units can be evaluated in any order, and then the channels in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from operators.rtl import tools
from operators.rtl.netlist import Netlist
from operators.rtl.verilog import Written

_LONG: Final = 10_000_000
"""The number of module evaluations above which compiler optimisation saves time."""

_HEADER: Final = """\
// The base class of all modules.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#include "verilated.h"

struct Token { uint32_t words[@WORDS@] = {}; };

// The values on the wires of a channel.
struct Wires {
  bool ready = true, valid = false, ended = false, final = false;
  bool sends = false, takes = false, ends = false;
  Token shown, sent;
  // Counts the cycles in which the outputs of the channel may have changed.
  unsigned long version = 0;
};

using Numbers = std::vector<std::string>;

struct Instance {
  std::vector<Wires*> in, out;
  bool done = false, fault = false, request = false, answer = false;
  bool given_valid = false, given_last = false, given_next = false;
  Token given;
  virtual ~Instance() = default;
  // If a module does not change for its inputs, it is evaluated again when an input changes.
  void settle() {
    const unsigned long now = inputs();
    is_still = stays && now == seen && !given_valid;
    seen = now;
    if (!is_still) evaluate();
  }
  void edge() {
    if (!is_still) stays = clock();
  }

 protected:
  virtual unsigned long inputs() const = 0;
  virtual void evaluate() = 0;
  virtual bool clock() = 0;
  unsigned long version_of_wires() const {
    unsigned long sum = 0;
    for (const auto* each : in) sum += each->version;
    for (const auto* each : out) sum += each->version;
    return sum;
  }

 private:
  bool stays = false, is_still = false;
  unsigned long seen = 0;
};

using Make = std::unique_ptr<Instance> (*)(VerilatedContext*, const Numbers&);

template <typename Port> void bind_to(Port& port, const std::string& hexadecimal) {
  port = static_cast<Port>(std::stoull(hexadecimal, nullptr, 16));
}
template <std::size_t N> void bind_to(VlWide<N>& port, const std::string& hexadecimal) {
  for (std::size_t word = 0; word < N; ++word) {
    const std::size_t after = 8 * word, size = hexadecimal.size();
    const std::size_t digits = after < size ? std::min<std::size_t>(8, size - after) : 0;
    const std::string part = hexadecimal.substr(size - std::min(size, after + digits), digits);
    port.at(word) = digits ? std::stoul(part, nullptr, 16) : 0;
  }
}
template <typename Port> void put(Port& port, const Token& token) {
  std::memcpy(&port, token.words, sizeof port);
}
template <typename Port> void get(Token& token, const Port& port) {
  std::memcpy(token.words, &port, sizeof port);
}
"""

_LOOP: Final = """\
// Joins the instances that netlist.txt lists, and logs their transfers.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include "instances.h"
@DECLARATIONS@
static const Make makers[] = {@MAKERS@};

int main() {
  std::ifstream table("netlist.txt");
  VerilatedContext context;
  long cycles;
  std::size_t channels, units;
  table >> cycles >> channels >> units;
  std::vector<Wires> wires(channels);
  std::vector<std::unique_ptr<Instance>> all;
  std::vector<long> producers(channels);
  std::vector<std::vector<Token>> tokens(units);
  std::vector<std::vector<long>> latencies(units);
  std::vector<std::size_t> at(units), asked(units);
  std::vector<long> left(units);
  const auto made = [&] {
    std::size_t kind, count;
    table >> kind >> count;
    Numbers numbers(count);
    for (auto& each : numbers) table >> each;
    all.push_back(makers[kind](&context, numbers));
    return all.back().get();
  };
  const auto joined = [&](std::vector<Wires*>& ends) {
    std::size_t count, number;
    table >> count;
    for (; count; --count) { table >> number; ends.push_back(&wires[number]); }
  };
  for (std::size_t unit = 0; unit < units; ++unit) {
    Instance* each = made();
    joined(each->in);
    joined(each->out);
    std::size_t count;
    table >> count;
    for (; count; --count) {
      std::string bits;
      VlWide<@WORDS@> wide;
      table >> bits;
      bind_to(wide, bits);
      Token token;
      get(token, wide);
      tokens[unit].push_back(token);
    }
    table >> count;
    latencies[unit].resize(count);
    for (auto& each_latency : latencies[unit]) table >> each_latency;
  }
  for (std::size_t number = 0; number < channels; ++number) {
    Instance* each = made();
    table >> producers[number];
    each->out.push_back(&wires[number]);
  }

  FILE* log = std::fopen("transfers.log", "w");
  for (long cycle = 0; cycle < cycles; ++cycle) {
    for (std::size_t unit = 0; unit < units; ++unit) {
      Instance& each = *all[unit];
      each.answer = left[unit] == 1;
      each.given_valid = at[unit] < tokens[unit].size();
      each.given_last = at[unit] + 1 == tokens[unit].size();
      each.given = each.given_valid ? tokens[unit][at[unit]] : Token{};
      each.settle();
      if (each.request && asked[unit] < latencies[unit].size() && !latencies[unit][asked[unit]]) {
        each.answer = true;
        each.settle();
      }
      if (each.fault) std::fprintf(log, "2 %zu %ld 0\\n", unit, cycle);
    }
    for (std::size_t unit = 0; unit < units; ++unit) {
      Instance& each = *all[unit];
      if (each.request && asked[unit] < latencies[unit].size()) {
        left[unit] = latencies[unit][asked[unit]++];
      } else if (left[unit]) --left[unit];
      at[unit] += each.given_next;
      each.edge();
    }
    for (std::size_t number = 0; number < channels; ++number) {
      Wires& each = wires[number];
      if (each.sends) {
        const long level = each.sent.words[0] & ((1 << @LEVEL_BITS@) - 1);
        const bool bare = each.sent.words[0] >> @LEVEL_BITS@ & 1;
        std::fprintf(log, "0 %zu %ld %ld\\n", number, cycle, bare ? -1 - level : level);
      }
      if (each.takes) std::fprintf(log, "1 %zu %ld 0\\n", number, cycle);
      each.ends = all[producers[number]]->done;
      all[units + number]->settle();
      all[units + number]->edge();
    }
  }
  std::fclose(log);
}
"""

_MAKE: Final = "std::unique_ptr<Instance> make_{}(VerilatedContext*{}, const Numbers&{})"

_ENDS: Final = {"out_valid": "valid", "out_end": "ended", "out_final": "final", "in_ready": "ready"}
"""The output wires of a channel, and their names in the loop."""


def _handed(ports: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return C++ that sets the inputs of a module, and C++ that reads its outputs."""
    before, after = [], []

    def given(port: str, value: str) -> None:
        if port in ports:
            is_token = port.endswith("_token")
            before.append(f"put(m.{port}, {value});" if is_token else f"m.{port} = {value};")

    def read(port: str, value: str) -> None:
        if port in ports:
            is_token = port.endswith("_token")
            after.append(f"get({value}, m.{port});" if is_token else f"{value} = m.{port};")

    if "in_ready" in ports:
        given("in_valid", "out[0]->sends")
        given("in_token", "out[0]->sent")
        given("in_end", "out[0]->ends")
        given("out_take", "out[0]->takes")
    for number in range(len(ports)):
        for port, field in (("valid", "valid"), ("token", "shown"), ("end", "ended")):
            given(f"in{number}_{port}", f"in[{number}]->{field}")
        given(f"in{number}_final", f"in[{number}]->final")
        read(f"in{number}_take", f"in[{number}]->takes")
        given(f"out{number}_ready", f"out[{number}]->ready")
        read(f"out{number}_valid", f"out[{number}]->sends")
        read(f"out{number}_token", f"out[{number}]->sent")
    for port in ("answer", "given_valid", "given_last", "given_token"):
        given(port, port.removesuffix("_token"))
    for port in ("done", "fault", "request", "given_next"):
        read(port, port)
    return before, after


def _instance(name: str, ports: frozenset[str]) -> str:
    before, after = _handed(ports)
    is_channel = "in_ready" in ports
    # The outputs of a channel are registers, so they are read after the clock edge.
    shown = [f"out[0]->{field} = m.{port};" for port, field in _ENDS.items() if port in ports]
    if is_channel:
        shown += ["get(out[0]->shown, m.out_token);", "out[0]->version += !is_same;"]
    inputs = (
        "return out[0]->sends | out[0]->takes << 1 | out[0]->ends << 2;"
        if is_channel
        else "return version_of_wires() << 3 | answer | given_valid << 1 | given_next << 2;"
    )
    clocked = "clk" in ports
    ties = [f"bind_to(m.{port}, numbers[{at}]);" for at, port in enumerate(_parameters(ports))]
    reset = ["m.rst = 1; m.clk = 0; m.eval(); m.clk = 1; m.eval(); m.rst = 0;"] if clocked else []
    lines = [
        "#include <algorithm>",
        '#include "instances.h"',
        f'#include "V{name}.h"',
        f'#include "V{name}___024root.h"',
        "namespace {",
        f"struct {name} final : Instance {{",
        f"  V{name} m;",
        f"  {name}(VerilatedContext* context, const Numbers& numbers) : m{{context}} {{",
        *(f"    {line}" for line in [*ties, *reset]),
        "  }",
        f"  unsigned long inputs() const override {{ {inputs} }}",
        "  void evaluate() override {",
        *(f"    {line}" for line in [*before, *(["m.clk = 0;"] if clocked else []), "m.eval();"]),
        *(f"    {line}" for line in after),
        "  }",
        "  bool clock() override {",
        *(["    m.clk = 1;", "    m.eval();"] if clocked else []),
        "    const bool is_same = !std::memcmp(kept, m.rootp, sizeof kept);",
        "    if (!is_same) std::memcpy(kept, m.rootp, sizeof kept);",
        *(f"    {line}" for line in shown),
        "    return is_same;",
        "  }",
        "  // All signals of the module: its inputs, registers and memories among them.",
        f"  unsigned char kept[sizeof(V{name}___024root)] = {{}};",
        "};",
        "}",
        _MAKE.format(name, " context", " numbers") + " {",
        f"  return std::make_unique<{name}>(context, numbers);",
        "}",
        "",
    ]
    return "\n".join(lines)


def _parameters(ports: frozenset[str]) -> list[str]:
    return sorted(port for port in ports if port.startswith("p_"))


def _table(netlist: Netlist, written: Written, kinds: list[str], cycles: int) -> Iterator[str]:
    def tied(module: str, parameters: dict[str, int]) -> str:
        ports = _parameters(written.ports[module])
        values = [f"{parameters.get(port[2:], 0):x}" for port in ports]
        return " ".join([str(kinds.index(module)), str(len(values)), *values])

    def listed(each: Sequence[object]) -> str:
        return " ".join(map(str, [len(each), *each]))

    yield f"{cycles} {len(netlist.channels)} {len(netlist.units)}"
    for unit in netlist.units:
        tokens = [f"{netlist.widths.packed(**fields):x}" for fields in unit.given or []]
        latencies = unit.latencies_cycles or []
        parts: list[Sequence[object]] = [unit.inputs, unit.outputs, tokens, latencies]
        yield " ".join([tied(unit.module, unit.parameters), *map(listed, parts)])
    for each in netlist.channels:
        parameters = {
            "depth": each.depth,
            "forward": each.forward_cycles,
            "backward": each.backward_cycles,
        }
        yield f"{tied(each.module, parameters)} {each.producer}"


def simulator(netlist: Netlist, written: Written, folder: Path, cycles: int) -> Path:
    kinds = sorted(written.ports)
    words, level_bits = str(-(-netlist.widths.bits // 32)), str(netlist.widths.level)
    (folder / "instances.h").write_text(_HEADER.replace("@WORDS@", words))
    declared = "\n".join(f"{_MAKE.format(kind, '', '')};" for kind in kinds)
    loop = _LOOP.replace("@DECLARATIONS@", declared)
    loop = loop.replace("@MAKERS@", ", ".join(f"make_{kind}" for kind in kinds))
    loop = loop.replace("@WORDS@", words).replace("@LEVEL_BITS@", level_bits)
    (folder / "loop.cpp").write_text(loop)
    (folder / "netlist.txt").write_text("\n".join([*_table(netlist, written, kinds, cycles), ""]))
    for kind in kinds:
        (folder / f"{kind}.cpp").write_text(_instance(kind, written.ports[kind]))
    steps = cycles * (len(netlist.units) + len(netlist.channels))
    return tools.compiled_apart(folder, kinds, runs_long=steps > _LONG)
