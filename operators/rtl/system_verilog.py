"""SystemVerilog of a module in Amaranth, with the signals and branches of its source."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

# Any: amaranth has no types.
from typing import Any, Final

from amaranth.hdl import Fragment, MemoryInstance, Signal, Value
from amaranth.hdl._ast import Assign, Concat, Operator, Slice, Switch, SwitchValue

from fabric import ProgramError
from operators.rtl.blocks import widths
from operators.rtl.expressions import Expressions, constant

_RESERVED: Final = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before
begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class
clk clocking cmos config const constraint context continue cover covergroup coverpoint cross
deassign default defparam design disable dist do edge else end endcase endchecker endclass
endclocking endconfig endfunction endgenerate endgroup endinterface endmodule endpackage
endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually
expect export extends extern final first_match for force foreach forever fork forkjoin function
generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies
import incdir include initial inout input inside instance int integer interconnect interface
intersect join join_any join_none large let liblist library local localparam logic longint
macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive
priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect
pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on
release repeat restrict return rnmos rpmos rst rtran rtranif0 rtranif1 s_always s_eventually
s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1
sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit
token_t tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0
unsigned until until_with untyped use uwire var vectored virtual void wait wait_order wand weak
weak0 weak1 while wildcard wire with within wor xnor xor
"""
"""Keywords of SystemVerilog, and names that a module has already."""

_GROUPS: Final = {
    "p": "Parameters, constant for each instance.",
    "in": "The producer: whether it may send, what it sends, whether it has ended.",
    "out": "The consumer: what it is shown, whether it takes it, whether the stream has ended.",
    "done": "The unit has ended; its last action may be in this cycle.",
    "fault": "The unit got an input that it is not built for.",
    "given": "Numbers that data decide, from outside.",
    "request": "Off-chip memory.",
}
"""Comments on ports, by the start of their names."""


def _kind(bits: int) -> str:
    return "logic" if bits == 1 else f"logic [{bits - 1}:0]"


def _kind_of(signal: Any) -> str:
    return "token_t" if "token" in signal.attrs else _kind(len(signal))


_MEANINGS: Final = {
    "level": "stop: dimensions that this element closes, from the inside",
    "bare": "a stop without a tile",
    "empty": "of a bare stop: the dimension that has no element",
    "rows": "of the tile",
    "valid_rows": "the part that is not padding",
    "in_memory": "a unit has to load the tile from on-chip memory first",
    "control": "selector, one bit per consumer; or number; or second tile of a tuple",
}


_OF_REGISTERS: Final = (
    "// A unit with registers proceeds after the cycle in which all that it sent left. It knows",
    "// products of sizes two cycles after it looks at an element, and then counts their cycles.",
)


def types_text() -> str:
    fields = [
        f"  {_kind(bits)} {name}; // {_MEANINGS.get(name, '')}".removesuffix(" // ")
        for name, bits in reversed(widths().fields.items())
    ]
    lines = [
        "/* verilator lint_off DECLFILENAME */ // All modules of a program are in this file.",
        "// Channels carry tokens: what decides cycles. Tiles and arithmetic stay outside.",
        "// A producer may send while its channel is ready; it sends in the cycle of valid.",
        "// A consumer is shown the first token while valid, and dequeues it in the cycle of take.",
        "// Fields and counters hold the largest values of the run from which this was written.",
        *(_OF_REGISTERS if widths().registers else ()),
        "typedef struct packed {",
        *fields,
        "} token_t;",
        "",
    ]
    return "\n".join(lines)


def module_text(
    name: str, module: Any, ports: Sequence[Any], comment: str = ""
) -> tuple[str, frozenset[str]]:
    """Return the text of a module and the names of its ports, with a clock if it has registers."""
    writer = _Writer(name, Fragment.get(module, None))
    return writer.text([Value.cast(port) for port in ports], comment)


class _Writer:
    def __init__(self, module: str, fragment: Any) -> None:
        self._module: Final = module
        self._statements: Final[dict[str, list[Any]]] = {"comb": [], "sync": []}
        self._memories: Final[list[Any]] = []
        self._gather(fragment)
        self._drivers: Final = {
            id(signal): domain
            for domain, statements in self._statements.items()
            for signal in _written(statements)
        }
        self._reading: Final = {
            id(port._data): (memory, port)
            for memory in self._memories
            for port in memory._read_ports
        }
        self._names: Final[dict[int, str]] = {}
        self._taken: Final = set(_RESERVED.split())
        # The signals that are read, in the order in which they were first read.
        self._used: Final[dict[int, Any]] = {}
        self._wires: Final[dict[tuple[str, int], str]] = {}
        self._expressions: Final = Expressions(self._bits, self._held, self._refused)

    def _gather(self, fragment: Any) -> None:
        if isinstance(fragment, MemoryInstance):
            if any(fragment._data.init):
                raise self._refused("a memory with initial numbers")
            self._memories.append(fragment)
        elif type(fragment) is not Fragment:
            raise self._refused(type(fragment).__name__)
        for domain, statements in fragment.statements.items():
            if domain not in self._statements:
                raise self._refused(f"the clock domain {domain!r}")
            self._statements[domain] += statements
        for inner, *_ in fragment.subfragments:
            self._gather(inner)

    def _refused(self, what: str) -> ProgramError:
        return ProgramError(
            f"the hardware {self._module} has {what}: expected signals, memories and one clock"
        )

    def text(self, ports: Sequence[Any], comment: str) -> tuple[str, frozenset[str]]:
        for each in ports:
            self._name(each)
        drivers, registers = self._driven_from(ports)
        clocked = self._clocked(registers)
        ports = [
            port
            for port in ports
            if id(port) in self._used or not self._name(port).startswith("p_")
        ]
        inner = [each for each in self._used.values() if not any(each is port for port in ports)]
        tokens = [each for each in inner if "token" in each.attrs]
        memories = [each for each in self._memories if self._is_read(each)]
        has_clock = bool(registers or memories)
        lines = [
            *(f"// {line.replace('``', '`')}".rstrip() for line in comment.splitlines()),
            "/* verilator lint_off UNUSEDSIGNAL */ // Some fields of tokens are not needed.",
            f"module {self._module} (",
            *self._header(ports, has_clock=has_clock),
            ");",
            *_declared(tokens, self._name),
            *(f"  {_kind(bits)} {name};" for (_, bits), name in self._wires.items()),
            "  /* verilator lint_on UNUSEDSIGNAL */",
            *_declared((each for each in inner if "token" not in each.attrs), self._name),
            *(self._stored(each) for each in memories),
            *drivers,
            *(f"  assign {name} = {text};" for (text, _), name in self._wires.items()),
            *clocked,
            "endmodule",
            "",
        ]
        names = {self._name(each) for each in ports} | ({"clk", "rst"} if has_clock else set())
        return "\n".join(part for line in lines for part in wrapped(line)), frozenset(names)

    def _driven_from(self, ports: Sequence[Any]) -> tuple[list[str], list[Any]]:
        """Return the lines that drive outputs and all signals they need, and the registers."""
        pending = [each for each in ports if self._is_driven(each)]
        texts: dict[int, list[str]] = {}
        registers = []
        while pending:
            signal = pending.pop(0)
            if id(signal) in texts:
                continue
            texts[id(signal)] = []
            if self._drivers.get(id(signal)) == "sync":
                registers.append(signal)
                list(self._branches(self._statements["sync"], {id(signal)}, "<="))
            else:
                texts[id(signal)] = self._driver(signal)
            pending += [each for each in self._used.values() if self._is_driven(each)]
        order = [*self._reading, *self._drivers]
        return [line for key in order for line in texts.get(key, ())], registers

    def _is_driven(self, signal: Any) -> bool:
        return id(signal) in self._drivers or id(signal) in self._reading

    def _is_read(self, memory: Any) -> bool:
        return any(id(port._data) in self._used for port in memory._read_ports)

    # Names.

    def _name(self, signal: Any) -> str:
        key = id(signal)
        if key not in self._names:
            base = re.sub(r"\W+|__+", "_", signal.name).strip("_")
            self._names[key] = self._unique(base or "signal")
        return self._names[key]

    def _unique(self, base: str) -> str:
        number, name = 1, base
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def _held(self, text: str, bits: int) -> str:
        key = text, bits
        if key not in self._wires:
            self._wires[key] = self._unique("part")
        return self._wires[key]

    def _stored(self, memory: Any) -> str:
        # Yosys would drop an array of structs.
        bits, rows = memory._data.shape, memory._data.depth
        return f"  logic [{bits - 1}:0] {self._memory(memory)} [0:{rows - 1}];"

    def _memory(self, memory: Any) -> str:
        return f"memory_{self._memories.index(memory)}"

    def _bits(self, signal: Any, start: int, stop: int) -> str | None:
        """Return the name of bits of a signal; None if nothing drives it."""
        if start == stop or not (self._is_driven(signal) or id(signal) in self._names):
            return None
        self._used[id(signal)] = signal
        name = self._name(signal)
        if (start, stop) == (0, len(signal)):
            return name
        if "token" in signal.attrs:
            at = 0
            for field, bits in widths().fields.items():
                if at <= start and stop <= at + bits:
                    name, start, stop = f"{name}.{field}", start - at, stop - at
                    if (start, stop) == (0, bits):
                        return name
                    break
                at += bits
        return f"{name}[{start}]" if stop == start + 1 else f"{name}[{stop - 1}:{start}]"

    def _header(self, ports: Sequence[Any], *, has_clock: bool) -> Iterator[str]:
        lines = ["  input  logic clk, rst,"] if has_clock else []
        for start, group in groupby(ports, lambda each: self._name(each).partition("_")[0]):
            way = start.rstrip("0123456789")
            if start != way:
                lines.append(f"  // {way.title()}put {start.removeprefix(way)}.")
            elif start in _GROUPS:
                lines.append(f"  // {_GROUPS[start]}")
            for (direction, kind), same in groupby(group, self._direction):
                lines.append(f"  {direction} {kind} {', '.join(map(self._name, same))},")
        lines[-1] = lines[-1].removesuffix(",")
        yield from lines

    def _direction(self, port: Any) -> tuple[str, str]:
        return ("output" if self._is_driven(port) else "input "), _kind_of(port)

    # Drivers.

    def _driver(self, signal: Any) -> list[str]:
        """Return the lines that drive a combinational signal."""
        if id(signal) in self._reading:
            return list(self._read_memory(signal))
        name, size = self._name(signal), len(signal)
        mine: list[Any] = []
        spans: list[tuple[int, int] | None] = []
        for each in self._statements["comb"]:
            if any(signal is written for written in _written([each])):
                target = _target(each.lhs) if isinstance(each, Assign) else None
                if target == (signal, 0, size):
                    mine, spans = [], []
                mine.append(each)
                spans.append(target and target[1:])
        wanted = {id(signal)}
        known = sorted(each for each in spans if each is not None)
        starts, stops = [each[0] for each in known], [each[1] for each in known]
        if len(known) == len(spans) and [*starts, size] == [0, *stops]:
            return [f"  assign {line}" for line in self._branches(mine, wanted, "=", "")]
        return [
            "  always_comb begin",
            *([] if spans[0] == (0, size) else [f"    {name} = {constant(signal.init, size)};"]),
            *self._branches(mine, wanted, "=", "    "),
            "  end",
        ]

    def _read_memory(self, signal: Any) -> Iterator[str]:
        text = self._expressions.text
        memory, port = self._reading[id(signal)]
        if port is memory._read_ports[0]:
            for writing in memory._write_ports:
                if len(writing._en) != 1:
                    raise self._refused("a memory that writes a part of a row")
                place = f"{self._memory(memory)}[{text(writing._addr)}]"
                enable = f"if ({text(writing._en)})"
                yield f"  always_ff @(posedge clk) {enable} {place} <= {text(writing._data)};"
        name, place = self._name(signal), f"{self._memory(memory)}[{text(port._addr)}]"
        if port._transparent_for:
            raise self._refused("a memory with a transparent port")
        if port._domain == "comb":
            yield f"  assign {name} = {place};"
        else:
            yield f"  always_ff @(posedge clk) if ({text(port._en)}) {name} <= {place};"

    def _clocked(self, registers: Sequence[Any]) -> list[str]:
        if not registers:
            return []
        resets = [
            f"      {self._name(each)} <= {constant(each.init, len(each))};"
            for each in registers
            if not each.reset_less
        ]
        wanted = set(map(id, registers))
        return [
            "  always_ff @(posedge clk) begin",
            *(["    if (rst) begin", *resets, "    end else begin"] if resets else []),
            *self._branches(self._statements["sync"], wanted, "<=", "      "),
            *(["    end"] if resets else []),
            "  end",
        ]

    # Statements.

    def _branches(
        self, statements: Sequence[Any], wanted: set[int], sign: str, indent: str = ""
    ) -> Iterator[str]:
        """Yield the statements that assign to ``wanted`` signals."""
        for each in statements:
            if isinstance(each, Assign):
                yield from self._assigned(each.lhs, each.rhs, wanted, sign, indent)
            elif isinstance(each, Switch):
                cases = [
                    (patterns, list(self._branches(inner, wanted, sign, f"{indent}  ")))
                    for patterns, inner, _ in each.cases
                ]
                yield from self._switch(each.test, cases, indent)
            else:
                raise self._refused(type(each).__name__)

    def _assigned(
        self, target: Any, value: Any, wanted: set[int], sign: str, indent: str
    ) -> Iterator[str]:
        if isinstance(target, Concat):
            at = 0
            for part in target.parts:
                bits = value[at : at + len(part)]
                yield from self._assigned(part, bits, wanted, sign, indent)
                at += len(part)
        elif isinstance(target, SwitchValue):
            cases = [
                (patterns, list(self._assigned(part, value, wanted, sign, f"{indent}  ")))
                for patterns, part in target.cases
            ]
            yield from self._switch(target.test, cases, indent)
        elif (found := _target(target)) is None:
            raise self._refused(f"an assignment to {type(target).__name__}")
        elif id(found[0]) in wanted:
            _, start, stop = found
            place, right = self._bits(*found), self._expressions.text(value, stop - start)
            if sign == "=" or place != right:
                yield f"{indent}{place} {sign} {right};"

    def _switch(
        self, test: Any, cases: Sequence[tuple[Any, list[str]]], indent: str
    ) -> Iterator[str]:
        """Yield the branches of a Switch, without those at the end that do nothing."""
        last = max((number for number, (_, lines) in enumerate(cases) if lines), default=-1)
        start = ""
        for patterns, lines in cases[: last + 1]:
            if patterns is not None:
                start += f"if ({self._expressions.matches(test, patterns)}) "
            if not last and len(lines) == 1:
                yield f"{indent}{start}{lines[0].strip()}"
                return
            yield f"{indent}{start}begin"
            yield from lines
            start = "end else "
        if last >= 0:
            yield f"{indent}end"


def _declared(signals: Iterable[Any], name: Any) -> Iterator[str]:
    kinds = defaultdict(list)
    for each in signals:
        kinds[_kind_of(each)].append(name(each))
    for kind, names in sorted(kinds.items()):
        yield f"  {kind} {', '.join(names)};"


def _target(value: Any) -> tuple[Any, int, int] | None:
    """Return a signal and its bits that an assignment to ``value`` sets."""
    match value:
        case Signal():
            return value, 0, len(value)
        case Operator(operator="u" | "s"):
            return _target(value.operands[0])
        case Slice() if (found := _target(value.value)) is not None:
            return found[0], found[1] + value.start, found[1] + value.stop
    return None


def _written(statements: Iterable[Any]) -> Iterator[Any]:
    for each in statements:
        yield from each._lhs_signals()


def wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]
