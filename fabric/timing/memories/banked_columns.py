"""Layout of the array of the banked memory's compiled loop.

Settings and state come first, then tables with one row per object. Channels, clients and banks are
identified by the index of their rows.
"""

from __future__ import annotations

from typing import Final

FAR: Final = 1 << 60
"""Later than any cycle."""

NEVER: Final = -(1 << 40)
"""A cycle long before any other."""

NONE: Final = -1

LEAST_ANSWER: Final = 4
"""Cycles from a channel's progress to the first answer of a later command."""

WORD: Final = 32
WORD_BITS: Final = 5
WORD_MASK: Final = (1 << WORD) - 1
"""Cycles of a bus in one integer, one bit each."""

# Settings: what the description says.
BURSTS: Final = 0
BURST_CYCLES: Final = 1
PSEUDO_GAP: Final = 2
GROUP_GAP: Final = 3
CL: Final = 4
CWL: Final = 5
RCD_READ: Final = 6
RCD_WRITE: Final = 7
RP: Final = 8
RAS: Final = 9
RC: Final = 10
WR: Final = 11
RTP: Final = 12
RRD_S: Final = 13
RRD_L: Final = 14
WTR_S: Final = 15
WTR_L: Final = 16
FAW: Final = 17
RFC: Final = 18
REFI: Final = 19
READ_ENTRIES: Final = 20
WRITE_ENTRIES: Final = 21
READ_SLOTS: Final = 22
WRITE_SLOTS: Final = 23
SLOTS: Final = 24
WRITE_HIGH: Final = 25
WRITE_LOW: Final = 26
FIRST_COME: Final = 27
CHANNELS: Final = 28
CHANNEL_BANKS: Final = 29
PSEUDO_CHANNELS: Final = 30
GROUPS: Final = 31
CHANNEL_GROUPS: Final = 32
LANES: Final = 33
RING_WORDS: Final = 34
PER_BUNDLE: Final = 35
REQUEST_BITS: Final = 36
LOGS: Final = 37

# What is kept between two calls.
CYCLE: Final = 38
UNSERVED: Final = 39
UNSERVED_WRITES: Final = 40
FINISHED: Final = 41
PERIOD_BITS: Final = 42
LOGGED: Final = 43
ROOM: Final = 44
LONGEST: Final = 45
SHORT: Final = 46

# Where tables begin.
CLIENTS_AT: Final = 47
CLIENTS: Final = 48
CHANNELS_AT: Final = 49
PERIODS_AT: Final = 50
MAPPING_AT: Final = 51
ACTIVE_AT: Final = 52
DONE_AT: Final = 53
LOG_AT: Final = 54
HEADER: Final = 55

# A location of a request: a number; the bits from BANK_SHIFT on are of its bank, then of its row.
BANK_SHIFT: Final = 16
CHANNEL_MASK: Final = (1 << BANK_SHIFT) - 1
BANK_BITS: Final = 16
BANK_MASK: Final = (1 << BANK_BITS) - 1

# A client.
NEXT_BUNDLE: Final = 0
LEFT: Final = 1
OPEN: Final = 2
READY: Final = 3
WRITE: Final = 4
ROW_ADDRESS: Final = 5
PITCH: Final = 6
ROW_REQUESTS: Final = 7
IN_ROW: Final = 8
HITS: Final = 9
MISSES: Final = 10
CONFLICTS: Final = 11
QUEUED: Final = 12
WAITED: Final = 13
SERVED: Final = 14
CLIENT_COLUMNS: Final = 15

# A channel. Cycles before CLOCKED are accounted for; the keys are of the requests whose row command
# and whose column go next, EMPTY where that is not known or none can.
CLOCKED: Final = 0
NEXT: Final = 1
ROW_KEY: Final = 2
COLUMN_KEY: Final = 3
MODE: Final = 4
MODE_FROM: Final = 5
ROWS_FROM: Final = 6
COLUMNS_FROM: Final = 7
NEXT_REFRESH: Final = 8
RESUME: Final = 9
WAITS_SINCE: Final = 10
QUEUES_SINCE: Final = 11
REFRESH_MASK: Final = 12
WAIT_MASK: Final = 13
SEQUENCE: Final = 14
READS: Final = 15
WRITES: Final = 16
READ_COMES: Final = 17
WRITE_COMES: Final = 18
READ_HEAD: Final = 19
WRITE_HEAD: Final = 20
QUEUED_READS: Final = 21
QUEUED_WRITES: Final = 22
USED_READ_ENTRIES: Final = 23
USED_WRITE_ENTRIES: Final = 24
READ_FREED: Final = 25
WRITE_FREED: Final = 26
FREE_READ_SLOT: Final = 27
FREE_WRITE_SLOT: Final = 28
ACTIVE_READS: Final = 29
ACTIVE_WRITES: Final = 30
SERVED_READS: Final = 31
SERVED_WRITES: Final = 32
ROW_HITS: Final = 33
ROW_MISSES: Final = 34
ROW_CONFLICTS: Final = 35
BUS: Final = 36
NUMBER: Final = 42
BANKS_AT: Final = 43
PSEUDOS_AT: Final = 44
GATES_AT: Final = 45
SLOTS_AT: Final = 46
REQUESTS_AT: Final = 47
BUSES_AT: Final = 48
ENDS_AT: Final = 49
CHANNEL_COLUMNS: Final = 50

# What becomes of a cycle of a data bus; in this order in a channel, from BUS on, and in a period.
DATA: Final = 0
REFRESH: Final = 1
TURNAROUND: Final = 2
WINDOW: Final = 3
CONFLICT: Final = 4
IDLE: Final = 5
FATES: Final = 6

PERIODS: Final = 512
"""The most periods of a run."""

# A bank. PRECHARGE_FROM is BLOCKED where HELD does not count yet; then where its pseudo channel is,
# and the first of the four gates of its group; and the first of the requests to it.
OPEN_ROW: Final = 0
READ_FROM: Final = 1
WRITE_FROM: Final = 2
ACTIVATE_FROM: Final = 3
PRECHARGE_FROM: Final = 4
HELD: Final = 5
PSEUDO: Final = 6
GATE_OF: Final = 7
FIRST: Final = 8
BANK_COLUMNS: Final = 9

# A pseudo channel: its latest columns, its latest four activations, and its lanes.
LAST_WRITE: Final = 0
LAST_READ: Final = 1
ACTIVATED: Final = 2
PSEUDO_LANE: Final = 6
FIRST_GROUP: Final = 7
PSEUDO_COLUMNS: Final = 8

# A request in a window.
BANK: Final = 0
ROW: Final = 1
CLIENT: Final = 2
ADMITTED: Final = 3
STARTED: Final = 4
LEFT_BURSTS: Final = 5
MET: Final = 6
FOLLOWING: Final = 7
REQUEST_COLUMNS: Final = 8

# What decides between requests stands apart: three rows of slots, one number each. READY is the
# cycle from which on its bank can take its next command; GATE where the cycle stands from which on
# others let it; ORDER its age above its slot, INACTIVE above both unless a row was opened for it.
SLOT_BITS: Final = 10
SLOT_MASK: Final = (1 << SLOT_BITS) - 1
INACTIVE: Final = 1 << 21
CYCLE_SHIFT: Final = 22
AGE_MASK: Final = (INACTIVE - 1) & ~SLOT_MASK
MOST_AGE: Final = AGE_MASK >> SLOT_BITS
BARRED_SHIFT: Final = 40
BARRED: Final = INACTIVE << BARRED_SHIFT
EMPTY: Final = 1 << 62
BLOCKED: Final = EMPTY >> CYCLE_SHIFT

# A request outside of the window: when it arrived and whose it is, and where it goes to.
QUEUED_WHEN: Final = 0
QUEUED_WHERE: Final = 1
QUEUED_COLUMNS: Final = 2
CLIENT_BITS: Final = 20
CLIENT_MASK: Final = (1 << CLIENT_BITS) - 1

# Lanes of the buses: of a channel, of each of its pseudo channels.
QUEUES: Final = 0
CHANNEL_LANES: Final = 1
CARRIES: Final = 0
TURNS: Final = 1
PSEUDO_LANES: Final = 2

# A row of the log of commands.
LOG_CYCLE: Final = 0
LOG_CHANNEL: Final = 1
LOG_WHAT: Final = 2
LOG_BANK: Final = 3
LOG_ROW: Final = 4
LOG_COLUMNS: Final = 5

ACTIVATES: Final = 0
PRECHARGES: Final = 1
READS_COLUMN: Final = 2
WRITES_COLUMN: Final = 3
REFRESHES: Final = 4
PRECHARGES_ALL: Final = 5
