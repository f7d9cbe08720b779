"""Modules of operators that move tiles: from and to off-chip memory, and through on-chip buffers.

Off-chip memory itself is outside. A module sends a ``request`` for its next tile in one cycle, and
gets an ``answer`` in a later cycle. Tiles stay outside, too. A unit keeps the common size of all
tiles of a buffer, and the size of the outermost dimension.
"""

from __future__ import annotations

from typing import Any, Final

from amaranth import Array, Mux, Signal

from operators.rtl.blocks import TILE, Emitter, Unit, any_of, changed, counted, token, widths, wire

DIMENSIONS: Final = 6
"""The most dimensions of a view."""


def source() -> Unit:
    """Send elements from outside, one per cycle."""
    u = Unit(0, 1)
    m, out = u.m, u.outputs[0]
    charges = u.parameter("charges")
    valid, last = Signal(name="given_valid"), Signal(name="given_last")
    given, takes = u.told()
    u.given += [valid, last]
    m.d.comb += [out.valid.eq(valid & out.ready), out.token.eq(given), takes.eq(out.valid)]
    ends = takes & last & ~(charges & ~given.bare)
    m.d.comb += u.done.eq(~valid if widths().registers else ~valid | ends)
    return u


def load(inputs: int, *, numbers: bool = False) -> Unit:
    """Read tiles along a view, once per element of the reference, or once without a reference.

    ``size_0`` is the innermost of the view's ``rank`` dimensions. With ``numbers`` each tile is a
    number from outside.
    """
    u = Unit(inputs, 1, off_chip=True)
    m, emitter = u.m, Emitter(u.m, u.outputs)
    rank = u.parameter("rank")
    rows, cols = u.parameter("rows"), u.parameter("cols")
    came = Signal()
    closing = counted(u, DIMENSIONS, rank, came)
    is_last = closing == rank

    is_waiting = Signal()
    outer = Signal(widths().level)
    begun = Signal()
    tile = token("tile")
    m.d.comb += [
        tile.level.eq(Mux(is_last, closing + outer, closing)),
        tile.rows.eq(rows),
        tile.cols.eq(cols),
        tile.valid_rows.eq(rows),
        tile.valid_cols.eq(cols),
        tile.in_memory.eq(1),
    ]
    m.d.comb += came.eq(is_waiting & u.answer)
    if numbers:
        number_read, takes = u.told()
        m.d.comb += [tile.control.eq(number_read.control), takes.eq(came)]
    left = emitter.push(came, tile)

    # Whether tiles of the current reading remain after this one.
    is_reading = Signal()
    still = wire(m, "still", is_reading & ~(came & is_last))
    goes_on = wire(m, "goes_on", emitter.leaves & left & (~is_waiting | came))
    if inputs:
        head = u.inputs[0]
        m.d.comb += head.take.eq(head.valid & goes_on & emitter.free & ~still)
        begins = head.take & ~head.token.bare
        with m.If(begins):
            m.d.sync += outer.eq(head.token.level)
        empty = changed(
            m, head.token, "empty", level=head.token.level + rank, empty=head.token.empty + rank
        )
        emitter.push(head.take & head.token.bare, empty)
        is_over: Any = head.over
    else:
        begins = ~begun
        m.d.sync += begun.eq(1)
        is_over = 1
    emitter.close()
    m.d.comb += u.done.eq(goes_on & ~still & ~begins & is_over & emitter.empty)
    m.d.comb += u.request.eq(begins | (goes_on & still))
    m.d.sync += is_reading.eq(still | begins)
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(came):
        m.d.sync += is_waiting.eq(0)
    return u


def store() -> Unit:
    """Write tiles. A tile keeps its slot until it is written."""
    u = Unit(1, 0, off_chip=True)
    m, head = u.m, u.inputs[0]
    is_waiting = Signal()
    m.d.comb += u.request.eq(head.valid & ~head.token.bare & ~is_waiting)
    m.d.comb += head.take.eq(head.valid & (head.token.bare | (is_waiting & u.answer)))
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(u.answer):
        m.d.sync += is_waiting.eq(0)
    m.d.comb += u.done.eq(head.over)
    return u


def random_store(outputs: int) -> Unit:
    """Write a tile for each address. Both keep their slots until the acknowledgement has left."""
    u = Unit(2, outputs, off_chip=True)
    m, (address, data), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    is_waiting = Signal()
    is_written = Signal()
    both = Signal()
    bare = address.token.bare
    m.d.comb += both.eq(address.valid & data.valid)
    m.d.comb += u.fault.eq(both & (address.token.level != data.token.level))
    m.d.comb += u.request.eq(both & ~bare & ~is_waiting & ~is_written)
    came = is_waiting & u.answer
    acknowledged = token("acknowledged")
    m.d.comb += [acknowledged.level.eq(address.token.level), acknowledged.bare.eq(bare)]
    m.d.comb += acknowledged.empty.eq(address.token.empty)
    left = emitter.push(both & ~is_written & (bare | came), acknowledged)
    emitter.close()
    takes = wire(m, "takes", both & Mux(is_written, emitter.leaves, (bare | came) & left))
    m.d.comb += [address.take.eq(takes), data.take.eq(takes)]
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(came):
        m.d.sync += is_waiting.eq(0)
    m.d.sync += is_written.eq(Mux(takes, 0, is_written | (both & (bare | came))))
    m.d.comb += u.done.eq(address.over & data.over)
    return u


COUNTERS: Final = 6
"""The most dimensions of a buffer together with its repetitions."""


def bufferize() -> Unit:
    """Take one tile per cycle. The last tile of ``rank`` dimensions sends a buffer reference."""
    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    rank = u.parameter("rank")
    level, bare, empty = head.token.level, head.token.bare, head.token.empty
    passes = bare & (empty >= rank)
    closes = (level >= rank) & ~passes
    m.d.comb += head.take.eq(head.valid & emitter.free)

    kept = token("kept_tile")
    count = Signal(widths().number)
    tile = token("tile")
    m.d.comb += tile.eq(Mux(bare, kept.as_value(), head.token.as_value()))
    # An element that closes every inner dimension ends an entry of the outermost one.
    rows = wire(m, "rows", count + (~bare & (level + 1 >= rank)))
    reference = changed(
        m, tile, "reference", level=level - rank, bare=passes, empty=0, control=rows
    )
    with m.If(passes):
        m.d.comb += reference.eq(0)
        m.d.comb += [reference.bare.eq(1), reference.level.eq(level - rank)]
        m.d.comb += reference.empty.eq(empty - rank)
    emitter.push(head.take & (closes | passes), reference)
    emitter.close()
    with m.If(head.take & ~passes):
        m.d.sync += [kept.eq(tile), count.eq(rows)]
        with m.If(closes):
            m.d.sync += [kept.eq(0), count.eq(0)]
    differs = any_of(getattr(kept, each) != getattr(head.token, each) for each in TILE)
    has_some = Signal()
    with m.If(head.take & ~passes):
        m.d.sync += has_some.eq(~closes & (has_some | ~bare))
    m.d.comb += u.fault.eq(head.take & ((has_some & ~bare & differs) | rows[-1]))
    m.d.comb += u.done.eq(emitter.empty & head.over)
    return u


def streamify(inputs: int) -> Unit:
    """Read each buffer, one tile per cycle. Release it one cycle after its last tile.

    ``size_0`` is the innermost of ``rank`` dimensions that are sent per buffer. Dimension
    ``ragged`` is as long as the buffer's outermost dimension. With a second input, a buffer is read
    once for each element of a group of ``repeats`` dimensions of that input.
    """
    u = Unit(inputs, 1)
    m, head, out = u.m, u.inputs[0], u.outputs[0]
    rank, ragged = u.parameter("rank"), u.parameter("ragged")
    is_empty = Signal()
    advances = Signal()
    m.d.comb += is_empty.eq((head.token.control == 0) & (ragged < rank))

    def ends(number: int, place: Any, size: Any) -> Any:
        is_last = place + 1 == Mux(number == ragged, head.token.control, size)
        # A single bare stop represents an empty buffer.
        is_inside = number <= ragged if number else 1
        return is_last | (is_empty & is_inside)

    closing = counted(u, COUNTERS, rank, advances, ends, widths().number)
    is_read = closing == rank

    is_through = Signal()
    has_guide = Signal()
    kept_guide = token("kept")
    guide = token("guide")
    active = Signal()
    closes = Signal()
    if inputs > 1:
        reference, repeats = u.inputs[1], u.parameter("repeats")
        shown = reference.token.as_value()
        m.d.comb += guide.eq(Mux(has_guide, kept_guide.as_value(), shown))
        m.d.comb += active.eq(head.valid & ~is_through & (has_guide | reference.valid))
        m.d.comb += reference.take.eq(active & ~has_guide)
        m.d.comb += closes.eq(guide.level >= repeats)
        m.d.comb += u.fault.eq(reference.take & head.token.bare & ~guide.bare)
        with m.If(reference.take):
            m.d.sync += kept_guide.eq(reference.token)
    else:
        m.d.comb += [active.eq(head.valid & ~is_through), closes.eq(1)]
        m.d.comb += [guide.level.eq(head.token.level), guide.bare.eq(head.token.bare)]
        m.d.comb += guide.empty.eq(head.token.empty)

    sent = changed(
        m, head.token, "sent", control=0, level=Mux(is_read, rank + guide.level, closing), bare=0
    )
    with m.If(guide.bare):
        m.d.comb += sent.eq(0)
        m.d.comb += [sent.bare.eq(1), sent.level.eq(guide.level + rank)]
        m.d.comb += sent.empty.eq(guide.empty + rank)
    with m.Elif(is_empty):
        m.d.comb += sent.eq(0)
        m.d.comb += [sent.bare.eq(1), sent.empty.eq(ragged)]
        m.d.comb += sent.level.eq(Mux(is_read, rank + guide.level, closing))
    m.d.comb += [out.valid.eq(active & out.ready), out.token.eq(sent)]
    is_last = wire(m, "is_last", out.valid & (guide.bare | is_read))
    # A tile takes a cycle; a bare stop takes none.
    m.d.comb += head.take.eq(is_through | (is_last & closes & sent.bare))
    m.d.sync += is_through.eq(is_last & closes & ~sent.bare)
    m.d.sync += has_guide.eq(active & ~is_last)
    m.d.comb += advances.eq(out.valid & ~guide.bare)
    m.d.comb += u.done.eq(u.over)
    return u


def scatter(banks: int) -> Unit:  # noqa: PLR0915 - one unit
    """Update up to ``width`` words per issue. Send all words after each group.

    An update keeps its bank busy for ``word_cycles``. A value in memory takes ``load_cycles``.
    """
    u = Unit(2, 1)
    m, (places, values), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    rank, words = u.parameter("rank"), u.parameter("words")
    width, word_cycles = u.parameter("width"), u.parameter("word_cycles")
    load_cycles = u.parameter("load_cycles")
    rows, cols = u.parameter("rows"), u.parameter("cols")
    address, value = places.token, values.token
    level, bare = address.level, address.bare
    passes = bare & (address.empty >= rank)
    ends = (level >= rank) & ~passes

    most_cycles = len(width) + len(word_cycles)
    counts = Array(Signal(len(width), name=f"count_{number}") for number in range(banks))
    issued = Signal(len(width))
    loads = Signal(most_cycles)
    bank = wire(m, "bank", address.control[: widths().number] % banks)
    new_issued = wire(m, "new_issued", issued + ~bare)
    new_loads = wire(m, "new_loads", loads + Mux(~bare & value.in_memory, load_cycles, 0))
    largest: Any = 0
    for number in range(banks):
        now = wire(m, f"now_{number}", counts[number] + (~bare & (bank == number)))
        largest = Mux(now > largest, now, largest)
    work = wire(m, "most", largest) * word_cycles
    cost = wire(m, "cost", Mux(work > new_loads, work, new_loads))

    # A full issue is charged before its last update is taken, a partial issue afterwards.
    is_sending = Signal()
    number = Signal(len(words))
    spent = Signal(most_cycles)
    pause = Signal(most_cycles)
    is_full = ~bare & (new_issued == width)
    going = Signal()
    fires = Signal()
    waits = Signal()
    is_idle = emitter.free & ~is_sending & (pause == 0) & ~waits
    m.d.comb += going.eq(places.valid & values.valid & is_idle)
    m.d.comb += fires.eq(going & (~is_full | (spent >= cost)))
    m.d.sync += spent.eq(Mux(going & ~fires, spent + 1, 0))
    m.d.comb += [places.take.eq(fires), values.take.eq(fires)]
    m.d.comb += u.fault.eq(going & ((level != value.level) | (bare != value.bare)))
    left_cycles = Signal(most_cycles)
    m.d.comb += left_cycles.eq(Mux(is_full | (new_issued == 0), 0, cost))
    with m.If(fires):
        m.d.sync += [issued.eq(new_issued), loads.eq(new_loads)]
        with m.If(~bare):
            m.d.sync += counts[bank].eq(counts[bank] + 1)
        with m.If(is_full | ends):
            m.d.sync += [issued.eq(0), loads.eq(0)]
            m.d.sync += [each.eq(0) for each in counts]

    closing = Signal(widths().level)
    shown = Mux(is_sending, closing, level)
    word = token("word")
    m.d.comb += [word.rows.eq(rows), word.cols.eq(cols), word.valid_rows.eq(rows)]
    m.d.comb += word.valid_cols.eq(cols)
    with m.If(number + 1 == words):
        m.d.comb += word.level.eq(shown - rank + 1)
    begins = fires & ends
    m.d.sync += pause.eq(Mux(pause == 0, 0, pause - 1))
    sends = Signal()
    goes_on = Signal()
    is_due = is_sending & emitter.free & (pause == 0) & ~waits
    m.d.comb += sends.eq(is_due | (begins & (left_cycles == 0)))
    left = emitter.push(sends, word)
    stop = changed(m, address, "stop", level=level - rank + 1, empty=address.empty - rank + 1)
    emitter.push(fires & passes, stop)
    emitter.close()
    with m.If(begins):
        m.d.sync += [closing.eq(level), is_sending.eq(1)]
        with m.If(left_cycles != 0):
            m.d.sync += pause.eq(left_cycles - 1)
    with m.If(sends):
        m.d.sync += number.eq(Mux(number + 1 == words, 0, number + 1))
        with m.If(number + 1 == words):
            m.d.sync += is_sending.eq(0)
    # The port is busy from the cycle in which a word has left.
    m.d.sync += waits.eq((sends & ~left) | (waits & ~emitter.leaves))
    with m.If((sends & left) | (waits & emitter.leaves)):
        m.d.sync += pause.eq(word_cycles - 1)
    m.d.comb += goes_on.eq(is_sending | begins | (pause != 0) | waits | (sends & left))
    m.d.comb += u.done.eq(emitter.empty & ~goes_on & places.over & values.over)
    return u
