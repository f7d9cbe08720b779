"""Modules of operators on pieces. They take inputs and send outputs in the same cycle.

Streams are static, so bare stops do not occur. Pieces are squares of one size.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: amaranth has no types.
from typing import Any, Final

from amaranth import Array, Mux, Signal

from operators.rtl.blocks import Output, Unit, all_of, any_of, changed, counted, token, widths, wire

DIMENSIONS: Final = 8
"""The most dimensions of a loaded stream of pieces."""

TOKEN_DIMENSIONS: Final = 2
"""The most dimensions of the pieces of a token."""

_SETS: Final = 32
_SET_PIECES: Final = 8
_HELD_SETS: Final = 64
"""The most sets that tokens wait in. A set that two tokens share counts twice."""

_IDLE_CYCLES: Final = 256


def _sends(u: Unit, output: Output, enable: Any, piece: Any) -> None:
    u.m.d.comb += [output.valid.eq(enable), output.token.eq(piece)]


def map_(
    inputs: int, outputs: int, level: Callable[[Unit, Any], Any] = lambda _, level: level
) -> Unit:
    """Take a piece of every input and send one to every output, with the stop ``level``."""
    u = Unit(inputs, outputs)
    m, first = u.m, u.inputs[0].token
    fires = wire(m, "fires", u.is_valid & all_of(sink.ready for sink in u.outputs))
    piece = changed(m, first, "piece", level=level(u, first.level))
    for source in u.inputs:
        m.d.comb += source.take.eq(fires)
    for sink in u.outputs:
        _sends(u, sink, fires, piece)
    differs = any_of(source.token.level != first.level for source in u.inputs[1:])
    m.d.comb += u.fault.eq(fires & differs)
    m.d.comb += u.done.eq(u.over)
    return u


def promote() -> Unit:
    """Raise stops of ``level`` and above by one."""
    return map_(1, 1, lambda u, level: level + (level >= u.parameter("level")))


def accumulate() -> Unit:
    """Sum the innermost dimension. Only its last piece needs a credit, which is for the sum."""
    u = Unit(1, 1)
    m, head, out = u.m, u.inputs[0], u.outputs[0]
    level = head.token.level
    closes = level != 0
    m.d.comb += head.take.eq(head.valid & (~closes | out.ready))
    _sends(u, out, head.take & closes, changed(m, head.token, "total", level=level - 1))
    m.d.comb += u.done.eq(head.over)
    return u


def repeat() -> Unit:
    """Send each token ``times`` times, and dequeue it in a later cycle."""
    u = Unit(1, 1)
    m, head, out = u.m, u.inputs[0], u.outputs[0]
    times = u.parameter("times")
    given = Signal(len(times))
    sends = wire(m, "sends", head.valid & out.ready & (given != times))
    m.d.comb += head.take.eq(head.valid & (given == times))
    level = Mux(given + 1 == times, head.token.level + 1, 0)
    _sends(u, out, sends, changed(m, head.token, "copy", level=level))
    m.d.sync += given.eq(Mux(head.take, 0, given + sends))
    m.d.comb += u.done.eq(head.over)
    return u


def big_tile() -> Unit:
    """Sum the tiles of each group, piece by piece.

    A stop of 2 ends a tile, and a higher stop ends the last tile of a group. Output 0 sends partial
    sums to input 1 by way of a buffer. After the last tile, output 1 sends the sums.
    """
    u = Unit(2, 2)
    m, (data, partial), (around, total) = u.m, u.inputs, u.outputs
    adds = Signal()
    drains = Signal()
    sums = Signal()
    leaves = Signal()
    m.d.comb += sums.eq(data.valid & around.ready & ~drains & (~adds | partial.valid))
    m.d.comb += leaves.eq(partial.valid & total.ready & drains)
    m.d.comb += [data.take.eq(sums), partial.take.eq(leaves | (sums & adds))]
    level, held = data.token.level, partial.token.level
    _sends(u, around, sums, data.token)
    _sends(u, total, leaves, changed(m, partial.token, "sum", level=held - (held > 2)))
    with m.If(sums & (level >= 2)):
        m.d.sync += [adds.eq(level == 2), drains.eq(level > 2)]
    with m.If(leaves & (held > 2)):
        m.d.sync += drains.eq(0)
    m.d.comb += u.done.eq(u.over & ~drains)
    return u


def _parts(u: Unit, at: Any, left: Any) -> Any:
    """Return the number of pieces used in a set; 0 after a cycle with ``left``."""
    used = Signal(range(_SET_PIECES))
    with u.m.If(at):
        u.m.d.sync += used.eq(Mux(left, 0, used + 1))
    return used


def _leaves(used: Any, ends: Any) -> Any:
    """Return whether a piece is the last one of its set.

    If a token ends with the first piece of a set, the next token begins in this set.
    """
    return (used != 0) & (ends | (used + 1 == _SET_PIECES))


class _Sets:
    """The sets of a buffer: the free ones, the next one, and the held ones in order.

    Attributes:
        is_ready: the next set is chosen.
        overflows: more sets are held than there is room for.
    """

    def __init__(self, m: Any, works: Any, begins: Any, shares: Any, frees: Any) -> None:
        """Choose the highest free set, at least a cycle before it is used.

        ``begins`` uses the next set, and ``shares`` uses the set before it again for the next
        token. ``frees`` returns the set that has been held for longest.
        """
        held = Array(Signal(range(_SETS), name=f"held_{at}") for at in range(_HELD_SETS))
        oldest = Signal(range(_HELD_SETS))
        newest = Signal(range(_HELD_SETS))
        count = Signal(range(_HELD_SETS + 1))
        number = Signal(range(_SETS))
        free = Signal(_SETS, init=-1)
        chosen = Signal(range(_SETS))
        latest = Signal(range(_SETS))
        self.is_ready: Any = Signal()
        self.overflows: Any = (count == _HELD_SETS) & (begins | shares)

        now_free = Signal(_SETS)
        m.d.comb += now_free.eq(Mux(frees, free | (1 << held[oldest]), free))
        choice = Signal(range(_SETS))
        for at in range(_SETS):
            with m.If(now_free[at]):
                m.d.comb += choice.eq(at)
        chooses = wire(m, "chooses", works & ~self.is_ready & (now_free != 0))
        m.d.sync += free.eq(Mux(chooses, now_free & ~(1 << choice), now_free))
        m.d.sync += self.is_ready.eq(chooses | (self.is_ready & ~begins))
        with m.If(chooses):
            m.d.sync += chosen.eq(choice)

        m.d.comb += number.eq(Mux(begins, chosen, latest))
        with m.If(begins | shares):
            m.d.sync += [held[newest].eq(number), newest.eq(newest + 1), latest.eq(number)]
        m.d.sync += oldest.eq(oldest + frees)
        m.d.sync += count.eq(count + (begins | shares) - frees)
        self.are_held: Any = count != 0


def token_store() -> Unit:
    """Store one piece per cycle in sets. Each piece that ends ``rank`` dimensions sends a token.

    Input 1 frees a set, and with a stop drops a token. No piece is stored in the same cycle.
    """
    u = Unit(2, 1)
    m, (data, freed), out = u.m, u.inputs, u.outputs[0]
    rank = u.parameter("rank")
    idle = Signal(range(_IDLE_CYCLES + 1))
    works = Signal()
    is_first = Signal(init=1)
    ends = Signal()
    m.d.comb += [works.eq(idle == _IDLE_CYCLES), ends.eq(data.token.level >= rank)]
    m.d.sync += idle.eq(idle + ~works)
    stores = Signal()
    left = Signal()
    forgets = Signal()
    used = _parts(u, stores, left)
    begins = stores & (used == 0)
    sets = _Sets(m, works, begins, stores & (used != 0) & is_first, freed.valid)
    m.d.comb += forgets.eq(freed.valid & (freed.token.level != 0))
    has_room = works & ~forgets & ((used != 0) | sets.is_ready)
    m.d.comb += stores.eq(data.valid & has_room & (~ends | out.ready))
    m.d.comb += [left.eq(_leaves(used, ends)), data.take.eq(stores), freed.take.eq(freed.valid)]
    with m.If(stores):
        m.d.sync += is_first.eq(ends)
    _sends(u, out, stores & ends, _sized(u, "tile", data.token.level - rank))
    m.d.comb += u.fault.eq(sets.overflows)
    m.d.comb += u.done.eq(data.over & ~sets.are_held)
    return u


def _sized(u: Unit, name: str, level: Any) -> Any:
    rows, cols = u.parameter("rows"), u.parameter("cols")
    tile = token(name)
    u.m.d.comb += [tile.rows.eq(rows), tile.cols.eq(cols), tile.valid_rows.eq(rows)]
    u.m.d.comb += [tile.valid_cols.eq(cols), tile.level.eq(level)]
    return tile


def read() -> Unit:
    """Take a token and send its pieces, one per cycle. Every ``times``-th token frees its sets.

    Output 1 marks the last piece of a set, with a stop if it is also the last of a token.
    """
    u = Unit(1, 2)
    m, head, (out, freed) = u.m, u.inputs[0], u.outputs
    rank, times = u.parameter("rank"), u.parameter("times")
    is_reading = Signal()
    outer = Signal(widths().level)
    number = Signal(len(times))
    gives = Signal()
    left = Signal()
    frees = Signal()
    closing = counted(u, TOKEN_DIMENSIONS, rank, gives)
    ends = closing == rank
    is_freeing = number + 1 == times
    used = _parts(u, gives & is_freeing, left)
    m.d.comb += left.eq(_leaves(used, ends))
    m.d.comb += frees.eq(is_freeing & (left | ends))
    m.d.comb += gives.eq(is_reading & out.ready & (~frees | freed.ready))
    m.d.comb += head.take.eq(head.valid & ~is_reading)
    _sends(u, out, gives, _sized(u, "piece", Mux(ends, rank + outer, closing)))
    free = token("free")
    m.d.comb += [free.rows.eq(1), free.cols.eq(1), free.valid_rows.eq(1), free.valid_cols.eq(1)]
    m.d.comb += free.level.eq(ends)
    _sends(u, freed, gives & frees, free)
    m.d.sync += is_reading.eq(head.take | (is_reading & ~(gives & ends)))
    with m.If(head.take):
        m.d.sync += outer.eq(head.token.level)
    with m.If(gives & ends):
        m.d.sync += number.eq(Mux(is_freeing, 0, number + 1))
    m.d.comb += u.done.eq(head.over & ~head.take & (~is_reading | (gives & ends)))
    return u


def load() -> Unit:
    """Request each piece of a stream of ``rank`` dimensions when a credit is available.

    The memory may answer in the same cycle. The end of the outermost dimension has no separate
    stop.
    """
    u = Unit(0, 1, off_chip=True)
    m, out = u.m, u.outputs[0]
    rank = u.parameter("rank")
    is_waiting = Signal()
    is_through = Signal()
    came = Signal()
    closing = counted(u, DIMENSIONS, rank, came)
    is_last = closing == rank
    m.d.comb += u.request.eq(out.ready & ~is_waiting & ~is_through)
    m.d.comb += came.eq((u.request | is_waiting) & u.answer)
    _sends(u, out, came, _sized(u, "piece", Mux(is_last, closing - 1, closing)))
    m.d.sync += is_waiting.eq((u.request | is_waiting) & ~came)
    m.d.sync += is_through.eq(is_through | (came & is_last))
    m.d.comb += u.done.eq(is_through)
    return u


def store() -> Unit:
    """Take a piece, and write it from the next cycle on. The stop ``top`` marks the last piece.

    The next piece is taken when the memory has answered.
    """
    u = Unit(1, 0, off_chip=True)
    m, head = u.m, u.inputs[0]
    top = u.parameter("top")
    asks = Signal()
    is_waiting = Signal()
    came = Signal()
    m.d.comb += u.request.eq(asks)
    m.d.comb += came.eq((asks | is_waiting) & u.answer)
    m.d.comb += head.take.eq(head.valid & (came | (~asks & ~is_waiting)))
    m.d.sync += is_waiting.eq((asks | is_waiting) & ~came)
    m.d.sync += asks.eq(head.take & (head.token.level < top))
    m.d.comb += u.done.eq(head.over)
    return u
