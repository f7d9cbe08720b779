"""Layout of the arrays of shared links, one row per object."""

from __future__ import annotations

from typing import Final

TICK_BITS: Final = 18
"""A cycle has 2 ** TICK_BITS ticks."""

TICKS: Final = 1 << TICK_BITS

PIECE_BITS: Final = 40
"""A byte has 2 ** PIECE_BITS pieces."""

MOST_BYTES: Final = 2**22
"""The largest transfer; larger elements are several transfers."""

UNCOUNTED_TICKS: Final = 3050
"""Less than this part (1 / 86) of a begun cycle is not counted.

Rates are rounded down and ends are rounded up, so a transfer that fills its last cycle ends some
ticks later.
"""

NEVER: Final = 1 << 62
"""An infinite cycle or rate."""

NOBODY: Final = -1

# A flow: what goes along one route or tree, one element after the other.
FIRST_LINK: Final = 0
END_LINK: Final = 1
ENDS: Final = 2  # channels that it leads to
SENDS: Final = 3  # of the element that was not sent on all of them yet, on so many
BASE: Final = 4
MASK: Final = 5
SENT: Final = 6
THROUGH: Final = 7
LIVE_AT: Final = 8  # its place among those that have something to do
UNDER_WAY: Final = 9  # a transfer of it is
REST: Final = 10  # bytes of its element behind that transfer
LEFT: Final = 11  # pieces to come at SINCE
SINCE_CYCLE: Final = 12
SINCE_TICK: Final = 13
RATE: Final = 14  # pieces a tick
BY: Final = 15  # the link that gives it this rate; NOBODY while that is not known
DUE_CYCLE: Final = 16  # when it begins, or is through at this rate
DUE_TICK: Final = 17
TOUCHED: Final = 18
ARRIVED: Final = 19  # elements, in the latest event
FLOW_COLUMNS: Final = 20

# Where a flow takes a link.
LINK: Final = 0
MEMBER: Final = 1  # its place in ``members`` while it is under way
FLOW: Final = 2
TAKEN_COLUMNS: Final = 3

# A link.
CAPACITY: Final = 0  # pieces a tick
FIRST_MEMBER: Final = 1
MEMBERS: Final = 2
LEVEL: Final = 3  # the rate that it gives; NEVER where it is not full
OPEN: Final = 4  # members whose rate is not known
LOAD: Final = 5  # the rates of the others
MARKED: Final = 6  # to be looked at
FULL_AT: Final = 7  # the rate at which it will be full; NEVER where it will not
WAITS: Final = 8
LINK_COLUMNS: Final = 9

# What waits for its turn in a flow, or is under way.
BEGIN_CYCLE: Final = 0
SIZE_BYTES: Final = 1
WAITING_COLUMNS: Final = 2

# Of all of them.
LIVE: Final = 0
NOW_CYCLE: Final = 1
NOW_TICK: Final = 2
NEXT_CYCLE: Final = 3
NEXT_TICK: Final = 4
ARRIVALS: Final = 5  # flows of which something has arrived
TOUCHES: Final = 6
MARKS: Final = 7
NOTES: Final = 8
