"""Columns of tables of integers that the loops of ``tally`` go over."""

from __future__ import annotations

from typing import Final

from fabric.timing.log.log_rows import LONG_COLUMNS

# Of a long row.
ROW: Final = len(LONG_COLUMNS)
(
    CHANNEL, ELEMENT, STOP, TAKEN_ORDER, TAKEN, RECEIVE_WAIT, _, SENT, SEND_WAIT, REQUESTED,
    _, RESERVED, _, SEEN,
) = range(ROW)  # fmt: skip

# Of a channel: its units and latencies, and whether links that others use delay what is sent.
WAY: Final = 5
PRODUCER, CONSUMER, FORWARD, BACKWARD, SHARED = range(WAY)

# Of a wait: a channel of -1 is none; it chose where several channels were looked at.
WAIT: Final = 6
UNIT, CAUSE, ON, END, CYCLES, CHOSE = range(WAIT)

# Of what went through a channel; NEXT is the number of the element that is dequeued next.
COUNTS: Final = 12
(
    NEXT, HELD, HELD_VALUES, TAKEN_VALUES, BARE_STOPS, NEWEST_SENT, LAST_TAKEN, PEAK,
    LEFT_OVER_VALUES, EMPTY, FULL, CREDIT,
) = range(COUNTS)  # fmt: skip
