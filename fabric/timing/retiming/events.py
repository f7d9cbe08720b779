"""Kinds of a record's events.

An event is two integers: ``channel << SHIFT | kind``, and an amount. For a request, the upper bits
are the number of events of the unit since the reading.
"""

from __future__ import annotations

from typing import Final

SHIFT: Final = 4
KIND: Final = (1 << SHIFT) - 1

# Operations on channels, and a unit's end: the amount is the cycles it worked before.
SEE: Final = 0
TAKE: Final = 1
SEND: Final = 2
RESERVE: Final = 3
PUT: Final = 4
END: Final = 5
FINISH: Final = 6
LAST_WORKED: Final = FINISH

# Cycles of the unit itself: worked; waited for a memory, as long as in the run that was recorded.
WORK: Final = 7
WAIT: Final = 8

# Events with cycles that depend on other stamps than the unit's previous clock.
NOTE: Final = 9
LATE: Final = 10
"""The next element is visible this many cycles after a reading, or later."""
AT: Final = 11
"""The next element is visible in this cycle, or later."""
ARRIVAL: Final = 12
"""Remember when this element of the channel became visible."""
UNTIL: Final = 13
"""Be busy until this many cycles after the remembered arrival."""
IDLE: Final = 14
"""Wait until this many cycles after the channel's next element becomes visible."""
HEAR: Final = 15
"""Dequeue an element in the cycle in which it is shown, behind the clock."""

NONE: Final = -1
"""No channel, cycle or unit."""
