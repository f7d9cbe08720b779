"""Layout of the compiled loop's arrays, one row per object."""

from __future__ import annotations

from typing import Final

# A stage: one operator.
NOW: Final = 0
BUSY: Final = 1
FLOPS: Final = 2
STATE: Final = 3
PC: Final = 4
PC_END: Final = 5
STATUS: Final = 6
WAIT: Final = 7
FIRST_INPUT: Final = 8
INPUTS: Final = 9
FIRST_OUTPUT: Final = 10
OUTPUTS: Final = 11
ARRIVAL: Final = 12
MARKS: Final = 13
DRAIN: Final = 14
FIRST_STAMP: Final = 15
TIMES: Final = 16
CHOSE: Final = 17
BEGAN: Final = 18
STAGE_COLUMNS: Final = 19

# Its status.
READY: Final = 0
NO_ELEMENT: Final = 1
NO_CREDIT: Final = 2
PACED: Final = 3
DRAINING: Final = 4
STUCK: Final = 5
FINISHED: Final = 6
OFF_CHIP: Final = 7

# A channel.
DEPTH: Final = 0
FORWARD: Final = 1
BACKWARD: Final = 2
BASE: Final = 3
MASK: Final = 4
SENT: Final = 5
RESERVED: Final = 6
TAKEN: Final = 7
CLOSED: Final = 8
ENDED: Final = 9
EMPTY: Final = 10
FULL: Final = 11
CREDIT: Final = 12
BARE_SENT: Final = 13
LEFT_OVER: Final = 14
PEAK: Final = 15
LAST_CREDIT: Final = 16
PRODUCER: Final = 17
CONSUMER: Final = 18
COUNTED: Final = 19
RANK: Final = 20
INTERVAL: Final = 21
NEXT_SEND: Final = 22
NEXT_TAKE: Final = 23
FLOW: Final = 24
ARRIVED: Final = 25
LINKS: Final = 26
CARRIED: Final = 27
CHANNEL_COLUMNS: Final = 28

OUTSIDE: Final = -1
"""No stage, reader or flow."""

# A slot of a channel; the last two where links are shared. What is under way there is visible in no
# cycle yet: the one that was requested stands in that place.
VISIBLE: Final = 0
CODE: Final = 1
USABLE: Final = 2
SET_OUT: Final = 3
LATE: Final = 4
SLOT_COLUMNS: Final = 5

# A dimension of a stream whose shape the program has stated.
SIZE: Final = 0
GROUPS: Final = 1
LEAST: Final = 2
MOST: Final = 3
CLAIMED: Final = 4
DIMENSION_COLUMNS: Final = 5

# A state of an automaton, and what it waits for.
KIND: Final = 0
PORT: Final = 1
CARRIES: Final = 2
LAST_CODE: Final = 3
LAST_TRANSITION: Final = 4
STATE_COLUMNS: Final = 5

PEEK: Final = 0
POP: Final = 1
END: Final = 2
STARVE: Final = 3

# What is known: hashed by state and code.
KNOWN_COLUMNS: Final = 3
STATE_FACTOR: Final = 0x9E3779B1
CODE_FACTOR: Final = 0x85EBCA77
CODE_SHIFT: Final = 29

# A transition: a stretch of operations, and the state after them.
START: Final = 0
STOP: Final = 1
NEXT: Final = 2
TRANSITION_COLUMNS: Final = 3

# An operation.
WHAT: Final = 0
AT: Final = 1
SENDS: Final = 2
FROM: Final = 3
AMOUNT: Final = 4
STAMP: Final = 5
OPERATION_COLUMNS: Final = 6

TAKE: Final = 0
CHARGE: Final = 1
COMPUTE: Final = 2
NOTE: Final = 3
UNTIL: Final = 4
LAST_WORK: Final = UNTIL
SEND: Final = 5
SEND_AT: Final = 6
RESERVE: Final = 7
PUT: Final = 8
LAST_SEND: Final = PUT
MARK: Final = 9
HOLD: Final = 10
BURST: Final = 11
CHECK: Final = 12
REPEAT: Final = 13

AT_ONCE: Final = 1
"""Amount of a TAKE without an earlier look."""

STAMPS: Final = 4
"""The most clock readings of an operator at a time."""

# What the loop is told, and says.
READY_HEAD: Final = 0
READY_COUNT: Final = 1
ASKED_STATE: Final = 2
ASKED_CODE: Final = 3
LEDGER: Final = 4
LIVE: Final = 5
TOUCHED: Final = 6
SUBMITTED: Final = 7
OUTWARD: Final = 8
TOO_FAR: Final = 9
JOURNAL: Final = 10
ARRIVAL_CYCLE: Final = 11
CONTROLS: Final = 12

# Why it comes back.
AT_REST: Final = 0
ASKS: Final = 1
TIRED: Final = 2
GROWS: Final = 3
RECORDS: Final = 4
FAILS: Final = 5
CROWDS: Final = 6

# A burst: of which stage, its size (see ``Codes.bursts``), the number of its tile.
SUBMITTED_COLUMNS: Final = 3

# A row of the journal: a stage, and which transition it took.
STAGE_SHIFT: Final = 32

FAR: Final = 1 << 60
"""Cycles and FLOPs from here on use Python's unbounded integers."""

# An element as a number: kind, number in a tile, bare stop, level of its stop.
LEVEL_BITS: Final = 7
BARE: Final = 1 << LEVEL_BITS
NUMBER_SHIFT: Final = 8
NUMBER_BITS: Final = 31
KIND_SHIFT: Final = NUMBER_SHIFT + NUMBER_BITS
NUMBER_MASK: Final = ((1 << NUMBER_BITS) - 1) << NUMBER_SHIFT
ENDED_CODE: Final = -1
