from __future__ import annotations

import operator
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

from fabric import ProgramError
from operators.rtl import blocks, tools
from operators.rtl.hardware import design, write
from operators.rtl.system_verilog import module_text, types_text
from tests.rtl.driving import linted
from tests.rtl.test_hardware import program


def test_shipped_program_has_named_wires_and_no_warning(tmp_path: Path) -> None:
    write(design(program("simplified_moe", "wires.toml")), tmp_path)

    assert linted(tmp_path, "modules.sv", "top.sv", "testbench.sv") == ""
    text = (tmp_path / "modules.sv").read_text()
    assert not re.findall(r"\bsignal(?:_\d+)?\b", text)
    assert max(map(len, text.splitlines())) <= 100


SHAPES = [unsigned(1), unsigned(4), unsigned(9), signed(3), signed(8)]
OPERATIONS = [
    operator.add, operator.sub, operator.and_, operator.or_, operator.xor,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip


def expression(draw: random.Random, signals: list[Any], depth: int) -> Any:
    """Return a random expression of signals and constants."""
    if not depth:
        return Value.cast(draw.choice([*signals, 0, 1, 5, -3]))
    a, b, c = (expression(draw, signals, depth - 1)[:40] for _ in range(3))
    if draw.randrange(3) == 0:
        a, b = a.as_signed(), draw.choice([b, b.as_signed()])
    by = draw.choice(signals)[:2]
    start = draw.randrange(len(a))
    both = Cat(a, b)
    return draw.choice(
        [
            *(partial(each, a, b) for each in OPERATIONS),
            lambda: ~a,
            lambda: -a,
            # A solver takes too long for wider products.
            lambda: a[:5] * b[:5],
            lambda: a[:5].as_signed() * b[:5],
            lambda: Mux(c, a, b),
            lambda: Array([a, b, c])[by],
            lambda: both[start : start + 1 + draw.randrange(len(b))],
            lambda: (a ^ b)[: start + 1],
            lambda: (a + b)[start:],
            lambda: a.as_unsigned() << by,
            lambda: a.as_unsigned() >> by,
            lambda: both.word_select(by, 3),
            lambda: both.bit_select(by, 2),
            a.any,
            a.all,
            a.xor,
            lambda: a.matches("1" + "-" * (len(a) - 1), 0),
        ]
    )()


BENCH = """\
module testbench (input logic clk, rst, output logic finished);
  logic [244:0] given [0:{last}];
  logic [{width}:0] said;
  int at, log;
  own dut (.s0(given[at][0]), .s1(given[at][4:1]), .s2(given[at][13:5]), .s3(given[at][16:14]),
    .s4(given[at][24:17]), .s5(given[at][244:25]){ports});
  initial begin $readmemh("given.hex", given); log = $fopen("transfers.log", "w"); at = 0; end
  assign finished = at > {last};
  always_ff @(posedge clk) if (!rst && !finished) begin
    $fwrite(log, "%h\\n", said);
    at <= at + 1;
  end
endmodule
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_random_expressions_equal_amaranth_s_simulation(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    m = Module()
    signals = [Signal(shape, name=f"s{at}") for at, shape in enumerate(SHAPES)]
    signals.append(blocks.token("s5").as_value())
    outputs: list[Any] = []
    for number in range(300 if seed else 30):
        value = expression(draw, signals, 3)
        width = draw.choice([len(value), len(value) + 3, 2])
        outputs.append(Signal(width, name=f"y{number}"))
        m.d.comb += outputs[-1].eq(value)
    rows = [draw.getrandbits(245) & draw.getrandbits(245) for _ in range(30)]
    text, _ = module_text("own", m, [*signals, *outputs])
    (tmp_path / "modules.sv").write_text(f"{types_text()}\n{text}")
    (tmp_path / "top.sv").write_text("// All is in the testbench.\n")
    (tmp_path / "given.hex").write_text("\n".join(f"{row:x}" for row in rows))
    ends, at = "", 0
    for each in outputs:
        ends += f", .{each.name}(said[{at + len(each) - 1}:{at}])"
        at += len(each)
    (tmp_path / "testbench.sv").write_text(BENCH.format(last=29, width=at - 1, ports=ends))
    log = tools.simulate(tmp_path, tools.compiled(tmp_path)).read_text().split()

    simulator, expected = Simulator(m), []

    async def drive(context: Any) -> None:
        for row in rows:
            place = 0
            for each in signals:
                context.set(each, Const(row >> place, each.shape()).value)
                place += len(each)
            expected.append([int(context.get(each)) for each in outputs])

    simulator.add_testbench(drive)
    simulator.run()
    for row, line in zip(expected, log, strict=True):
        found, said = [], int(line, 16)
        for each in outputs:
            found.append(said % (1 << len(each)))
            said >>= len(each)
        assert found == row


def test_module_beyond_signals_memories_and_one_clock_is_refused() -> None:
    of_domain, of_memory = Module(), Module()
    of_domain.d.fast += Signal(name="a").eq(1)
    of_memory.submodules.memory = Memory(shape=4, depth=2, init=[3])

    with pytest.raises(ProgramError, match=r"hardware Own_x has the clock domain 'fast': expected"):
        module_text("Own_x", of_domain, [])
    with pytest.raises(ProgramError, match=r"hardware Own_x has a memory with initial numbers: ex"):
        module_text("Own_x", of_memory, [])
