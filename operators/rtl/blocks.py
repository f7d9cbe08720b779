"""The blocks of modules: credit channels, their ports, the output stage, counters.

A token has the fields of an element that affect timing. The data of tiles stay outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from operator import and_, or_

# Any: amaranth has no types; a token is a view of a signal.
from typing import Any, Final, NamedTuple

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory


def channel(slots: int, hops: int) -> tuple[Any, list[Any]]:
    """A channel with credits, for ``p_depth`` elements.

    An element that is sent in cycle s is shown from cycle s + ``p_forward`` on. A slot that is
    taken in cycle d is free from cycle d + ``p_backward`` on. Without these ports, both are 1.
    """
    m = Module()
    depth = Signal(slots.bit_length(), name="p_depth")
    forward = Signal(hops.bit_length(), name="p_forward")
    backward = Signal(hops.bit_length(), name="p_backward")
    ready, send, sent = Signal(name="in_ready"), Signal(name="in_valid"), token("in_token")
    closing = Signal(name="in_end")
    valid, shown, take = Signal(name="out_valid"), token("out_token"), Signal(name="out_take")
    ended = Signal(name="out_end")

    # Credits that are spent, or on their way back.
    used = Signal(slots.bit_length() + 1)
    back = _delayed(m, take, hops, backward, "returned")
    m.d.comb += ready.eq(used < depth)
    m.d.sync += used.eq(used + send - back)

    m.submodules.memory = memory = Memory(shape=widths().bits, depth=slots, init=[])
    write = memory.write_port()
    read = memory.read_port(domain="comb")
    arrives = _delayed(m, send, hops, forward, "arrives")
    first = Signal(range(max(2, slots)))
    last = Signal(range(max(2, slots)))
    held = Signal(slots.bit_length() + 1)
    m.d.comb += [
        write.en.eq(arrives),
        write.addr.eq(last),
        write.data.eq(_delayed(m, sent, hops, forward, "arriving")),
        read.addr.eq(first),
        shown.eq(read.data),
        valid.eq(held != 0),
    ]
    with m.If(arrives):
        m.d.sync += last.eq(Mux(last == slots - 1, 0, last + 1))
    with m.If(take):
        m.d.sync += first.eq(Mux(first == slots - 1, 0, first + 1))
    m.d.sync += held.eq(held + arrives - take)

    has_ended = Signal()
    m.d.sync += has_ended.eq(_delayed(m, closing, hops, forward, "ends"))
    final = Signal(name="out_final")
    m.d.comb += [ended.eq(has_ended), final.eq(has_ended & (held == 1))]
    ports = [depth, forward, backward, ready, send, sent, closing, valid, shown, take, ended]
    return m, ports if widths().registers else [*ports, final]


def _delayed(m: Any, signal: Any, hops: int, cycles: Any, name: str) -> Any:
    """Return ``signal`` delayed by ``cycles - 1``. The register that follows adds one cycle."""
    like = Signal if isinstance(signal, Signal) else token
    stages = [signal]
    for number in range(1, hops):
        stages.append(like(name=f"{name}_after_{number}"))
        m.d.sync += stages[-1].eq(stages[-2])
    if hops == 1:
        return signal
    result = like(name=name)
    with m.Switch(cycles):
        for number, stage in enumerate(stages):
            with m.Case(number + 1):
                m.d.comb += result.eq(stage)
    return result


class Widths(NamedTuple):
    """The bits of fields and counters, for the largest values in a program and its run.

    The defaults are for modules that are built outside of a netlist.

    Attributes:
        level: bits of the levels of stops and of numbers of dimensions.
        size: bits of rows and columns.
        number: bits of numbers in tiles, and of the size of a buffer's outermost dimension.
        control: bits of the field ``control``: a selector with one bit for each consumer, a number,
            two or three numbers of a tuple, or the second tile of a tuple.
        cycles: bits of the number of cycles.
        registers: whether units have the registers of the hardware file ``registered``.
        parameters: bits of each parameter in the netlist, by name. None outside of a netlist.
    """

    level: int = 5
    size: int = 20
    number: int = 42
    control: int = 128
    cycles: int = 40
    registers: bool = False
    parameters: Mapping[str, int] | None = None

    @property
    def fields(self) -> dict[str, int]:
        """The bits of each field of a token, from the lowest field on.

        ``level`` is the level of the stop. ``bare`` is a stop without a value, and ``empty`` its
        empty dimension.
        """
        stop = {"level": self.level, "bare": 1, "empty": self.level}
        return {**stop, **dict.fromkeys(SIZES, self.size), "in_memory": 1, "control": self.control}

    @property
    def bits(self) -> int:
        return sum(self.fields.values())

    def packed(self, **fields: int) -> int:
        """Return a token as one number, with other fields 0 and negative values as complements."""
        bits, at = 0, 0
        for name, width in self.fields.items():
            value = fields.pop(name, 0)
            if bits_of(value) > width:
                raise ValueError(f"{name} is {value}: expected a number of at most {width} bits")
            bits |= value % (1 << width) << at
            at += width
        assert not fields, fields
        return bits


SIZES: Final = ("rows", "cols", "valid_rows", "valid_cols")
TILE: Final = (*SIZES, "in_memory")
"""The fields of a tile."""

_widths: Final = ContextVar("widths", default=Widths())  # noqa: B039 - a tuple


def widths() -> Widths:
    return _widths.get()


@contextmanager
def building(widths: Widths) -> Iterator[None]:
    before = _widths.set(widths)
    try:
        yield
    finally:
        _widths.reset(before)


def bits_of(number: int) -> int:
    """Return the bits of a number: at least 1, and one more for the sign of a negative number."""
    return max(1, number.bit_length() + (number < 0))


def token(name: str) -> Any:
    return Signal(data.StructLayout(widths().fields), name=name, attrs={"token": 1})


def second(of: Any) -> Any:
    """Return the second tile of a tuple, which is in ``control``."""
    layout = data.StructLayout({name: widths().fields[name] for name in TILE})
    return data.View(layout, of.control[: layout.size])


def wire(m: Any, name: str, value: Any) -> Any:
    """Return a signal of ``value``, as wide as its largest result."""
    result = Signal(len(Value.cast(value)), name=name)
    m.d.comb += result.eq(value)
    return result


def overflows(values: Iterable[Any], bits: int) -> Any:
    """Return whether any of ``values`` takes more than ``bits``."""
    wide = [each for each in map(Value.cast, values) if len(each) > bits]
    return any_of(each[bits:].any() for each in wide)


def changed(m: Module, source: Any, name: str, **fields: Any) -> Any:
    """Return a copy of the token ``source`` with other ``fields``."""
    result = token(name)
    m.d.comb += result.eq(source)
    for field, value in fields.items():
        m.d.comb += getattr(result, field).eq(value)
    return result


class Input:
    """The end of a channel that a unit reads.

    Attributes:
        valid, token: whether an element is shown, and the element.
        end: the stream has ended, apart from a shown element.
        final: the shown element is the last one. With registers, ``final`` is 0.
        take: the unit dequeues the element in this cycle.
        over: no element is left after this cycle; with registers, before this cycle.
    """

    def __init__(self, number: int) -> None:
        self.valid: Any = Signal(name=f"in{number}_valid")
        self.token = token(f"in{number}_token")
        self.end: Any = Signal(name=f"in{number}_end")
        self.final: Any = Const(0) if widths().registers else Signal(name=f"in{number}_final")
        self.take: Any = Signal(name=f"in{number}_take")
        self.over: Any = self.end & (~self.valid | (self.take & self.final))


class Output:
    """The end of a channel that a unit writes.

    Attributes:
        ready: a credit is available.
        valid, token: the unit sends the token in this cycle, which requires a credit.
    """

    def __init__(self, number: int) -> None:
        self.ready: Any = Signal(name=f"out{number}_ready")
        self.valid: Any = Signal(name=f"out{number}_valid")
        self.token = token(f"out{number}_token")


class Unit:
    """A module of one kind of operator, while it is built.

    Attributes:
        m: the Amaranth module.
        inputs, outputs: its ends of channels.
        is_valid: every input has a token.
        over: every input has ended.
        done: the operator has ended. Its last action may be in this cycle.
        fault: the unit got an input that it cannot handle.
        given: the ports of a unit that gets its output, or numbers in it, from outside.
        request, answer: the ports of a unit that moves tiles from or to off-chip memory.
        parameters: constants of each instance, by name.
    """

    def __init__(self, inputs: int, outputs: int, *, off_chip: bool = False) -> None:
        self.m: Final[Any] = Module()
        self.inputs: Final = [Input(number) for number in range(inputs)]
        self.outputs: Final = [Output(number) for number in range(outputs)]
        self.is_valid: Final = all_of(each.valid for each in self.inputs)
        self.over: Final = all_of(each.over for each in self.inputs)
        self.done: Final[Any] = Signal(name="done")
        self.fault: Final[Any] = Signal(name="fault")
        self.request: Final[Any] = Signal(name="request")
        self.answer: Final[Any] = Signal(name="answer")
        self.parameters: Final[dict[str, Any]] = {}
        self.off_chip: Final = off_chip
        # A port without a driver would become an input.
        self.m.d.comb += self.fault.eq(0)
        self.given: list[Any] = []

    def parameter(self, name: str, bits: int | None = None) -> Any:
        """Return a constant that each instance sets. By default it fits the largest value."""
        known = widths().parameters
        if bits is None:
            bits = 20 if known is None else known.get(name, 1)
        self.parameters[name] = Signal(bits, name=f"p_{name}")
        return self.parameters[name]

    def told(self) -> tuple[Any, Any]:
        """Return a token from outside, and the signal that requests the next one.

        The arithmetic of tiles is outside. So a number or a selector that it computes comes from
        outside, in ``control``.
        """
        shown, uses = token("given_token"), Signal(name="given_next")
        self.given += [shown, uses]
        return shown, uses

    @property
    def ports(self) -> list[Any]:
        """All signals of the module's interface but clock and reset."""
        ports = [port for end in self.inputs for port in (end.valid, end.token, end.end, end.take)]
        ports += [port for end in self.outputs for port in (end.ready, end.valid, end.token)]
        if not widths().registers:
            ports += [end.final for end in self.inputs]
        ports += [self.done, self.fault, *self.parameters.values(), *self.given]
        return [*ports, self.request, self.answer] if self.off_chip else ports


class Emitter:
    """The output stage of a unit: it sends in order, and keeps an element that has to wait.

    The kept element leaves first. A pushed element leaves in the same cycle if credits are
    available and the wires are unused. Otherwise it is kept. A unit may proceed in the cycle in
    which all earlier elements leave, or with registers, in the next cycle.

    Attributes:
        leaves: no element is kept, or the kept one leaves in this cycle.
        free: the unit may proceed.
        empty: the kept and all pushed elements have left.
    """

    def __init__(
        self,
        m: Any,
        outputs: Sequence[Output],
        *,
        together: bool = False,
        shown: Sequence[Callable[[Any], Any]] | None = None,
    ) -> None:
        """Send on ``outputs``. With ``together``, all outputs of an element send in one cycle.

        Functions in ``shown`` select the part of an element for each output.
        """
        self._shown: Final = shown
        self._m: Final = m
        self._outputs: Final = outputs
        self._together: Final = together
        count = len(outputs)
        self._kept_mask = Signal(count, name="kept_mask")
        self._kept = token("kept")
        self._used: Any = None
        self._count = 0
        self._next: list[tuple[Any, Any]] = []
        self.empty: Any = Signal(name="empty")
        self.leaves: Any = self._fire(self._kept_mask, self._kept)
        self.free: Any = self._kept_mask == 0 if widths().registers else self.leaves
        self._pushed: Any = 0

    def _fire(self, mask: Any, what: Any) -> Any:
        """Send ``what`` to the outputs in ``mask``. Return whether all of them have sent it."""
        m, number = self._m, self._count
        self._count += 1
        ready = [
            each.ready if self._used is None else each.ready & ~self._used[at]
            for at, each in enumerate(self._outputs)
        ]
        fires = Signal(len(self._outputs), name=f"fires_{number}")
        shown = self._shown
        parts = [what] * len(self._outputs) if shown is None else [each(what) for each in shown]
        before: Any = 1
        every: Any = 1
        for at, is_ready in enumerate(ready):
            every = every & (~mask[at] | is_ready)
        for at, is_ready in enumerate(ready):
            m.d.comb += fires[at].eq(mask[at] & (every if self._together else before & is_ready))
            before = before & (~mask[at] | is_ready)
            with m.If(fires[at]):
                m.d.comb += self._outputs[at].valid.eq(1)
                m.d.comb += self._outputs[at].token.eq(parts[at])
        used = fires if self._used is None else self._used | fires
        self._used = wire(m, f"used_{number}", used)
        left = Signal(len(self._outputs), name=f"left_{number}")
        m.d.comb += left.eq(mask & ~fires)
        self._next.append((left, what))
        return wire(m, f"gone_{number}", left == 0)

    def push(self, enable: Any, what: Any, mask: Any = 1) -> Any:
        """Send ``what`` if ``enable``. Return whether it and everything before it have left.

        ``enable`` has to imply that everything before it has left.
        """
        given = Signal(len(self._outputs), name=f"given_{self._count}")
        self._m.d.comb += given.eq(Mux(enable, mask, 0))
        self._pushed = self._pushed | (given != 0)
        return self._fire(given, what)

    def close(self) -> None:
        """Keep the element that has not left."""
        m = self._m
        all_left = Cat(left for left, _ in self._next) == 0
        m.d.comb += self.empty.eq(self.free & ~self._pushed if widths().registers else all_left)
        m.d.sync += self._kept_mask.eq(0)
        for left, what in self._next:
            with m.If(left != 0):
                m.d.sync += self._kept_mask.eq(left)
                m.d.sync += self._kept.eq(what)


def _is_last(_number: int, place: Any, size: Any) -> Any:
    return place + 1 == size


def counted(
    u: Unit,
    count: int,
    rank: Any,
    advances: Any,
    is_last: Callable[[int, Any, Any], Any] = _is_last,
    bits: int = 1,
) -> Any:
    """Count through ``rank`` nested dimensions. ``rank`` is at most ``count``.

    The sizes are parameters, with ``size_0`` for the innermost dimension. ``is_last`` takes the
    number, place and size of a dimension. The place advances after a cycle with ``advances``. It
    has at least ``bits`` bits in each dimension.

    Returns:
        The number of dimensions that end at the current place, from the inside.
    """
    m = u.m
    known = widths().parameters
    names = [f"size_{number}" for number in range(count)]
    sizes = [u.parameter(each) for each in names if known is None or each in known]
    at = [Signal(max(bits, len(size)), name=f"at_{at}") for at, size in enumerate(sizes)]
    closing = Signal(widths().level, name="closing")
    ends: Any = 1
    for number, (place, size) in enumerate(zip(at, sizes, strict=True)):
        ends = wire(m, f"ended_{number}", ends & is_last(number, place, size) & (number < rank))
        with m.If(ends):
            m.d.comb += closing.eq(number + 1)
    with m.If(advances):
        for number, place in enumerate(at):
            with m.If(number < closing):
                m.d.sync += place.eq(0)
            with m.Elif(number == closing):
                m.d.sync += place.eq(place + 1)
    return closing


def all_of(bits: Iterable[Any]) -> Any:
    return reduce(and_, [*bits] or [Const(1)])


def any_of(bits: Iterable[Any]) -> Any:
    return reduce(or_, [*bits] or [Const(0)])


def largest(a: Any, b: Any) -> Any:
    return Mux(a > b, a, b)


def older(m: Any, ages: Sequence[Any], among: Any) -> Any:
    """Return the number of the oldest input in ``among``, or the first of equally old ones."""
    best = Signal(range(max(2, len(ages))), name="oldest")
    age: Any = 0
    found: Any = 0
    for number, each in enumerate(ages):
        is_better = among[number] & (~found | (each > age)) if number else among[0]
        age = wire(m, f"oldest_age_{number}", Mux(is_better, each, age))
        found = wire(m, f"oldest_found_{number}", found | among[number])
        with m.If(is_better):
            m.d.comb += best.eq(number)
    return best
