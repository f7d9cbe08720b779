"""What stands where in the one array that the banked memory's compiled loop works on.

First the settings and what is kept between two calls; then tables, one row for each thing. A
channel, a client and a bank are known by where their rows begin.
"""

from __future__ import annotations

from typing import Final

FAR: Final = 1 << 60
"""Later than any cycle."""

NEVER: Final = -(1 << 40)
"""Earlier than any cycle by more than anything takes."""

NONE: Final = -1

WORD: Final = 32
WORD_BITS: Final = 5
WORD_MASK: Final = (1 << WORD) - 1
"""Cycles of a bus, one bit each, that stand in one integer."""

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
READ_WINDOW: Final = 20
WRITE_WINDOW: Final = 21
ENTRIES: Final = 22
WRITE_ENTRIES: Final = 23
WRITE_HIGH: Final = 24
WRITE_LOW: Final = 25
FIRST_COME: Final = 26
CHANNELS: Final = 27
CHANNEL_BANKS: Final = 28
PSEUDO_CHANNELS: Final = 29
LANES: Final = 30
RING_WORDS: Final = 31
PER_BUNDLE: Final = 32
REQUEST_BITS: Final = 33
LOGS: Final = 34
KEPT_WORDS: Final = 35

# What is kept between two calls.
CYCLE: Final = 36
UNSERVED: Final = 37
UNSERVED_WRITES: Final = 38
FINISHED: Final = 39
PERIOD_BITS: Final = 40
LOGGED: Final = 41
ROOM: Final = 42
LONGEST: Final = 43
SHORT: Final = 44

# Where tables begin.
CLIENTS_AT: Final = 45
CLIENTS: Final = 46
CHANNELS_AT: Final = 47
PERIODS_AT: Final = 48
MAPPING_AT: Final = 49
ACTIVE_AT: Final = 50
DONE_AT: Final = 51
LOG_AT: Final = 52
HEADER: Final = 53

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

# A channel. Cycles before CLOCKED are accounted for, and no command goes before it.
CLOCKED: Final = 0
NEXT: Final = 1
MODE: Final = 2
MODE_FROM: Final = 3
NEXT_REFRESH: Final = 4
RESUME: Final = 5
HELD: Final = 6
WAITS_SINCE: Final = 7
QUEUES_SINCE: Final = 8
REFRESH_MASK: Final = 9
WAIT_MASK: Final = 10
SEQUENCE: Final = 11
READS: Final = 12
WRITES: Final = 13
READ_HEAD: Final = 14
WRITE_HEAD: Final = 15
QUEUED_READS: Final = 16
QUEUED_WRITES: Final = 17
FREE_READ_ENTRIES: Final = 18
FREE_WRITE_ENTRIES: Final = 19
FIRST_READ_ENTRY: Final = 20
FIRST_WRITE_ENTRY: Final = 21
SERVED_READS: Final = 22
SERVED_WRITES: Final = 23
ROW_HITS: Final = 24
ROW_MISSES: Final = 25
ROW_CONFLICTS: Final = 26
BUS: Final = 27
NUMBER: Final = 33
BANKS_AT: Final = 34
PSEUDOS_AT: Final = 35
GROUPS_AT: Final = 36
BOUNDS_AT: Final = 37
REQUESTS_AT: Final = 38
ENTRIES_AT: Final = 39
BUSES_AT: Final = 40
ENDS_AT: Final = 41
CHANNEL_COLUMNS: Final = 42

# What becomes of a cycle of a data bus; in this order in a channel, from BUS on, and in a period.
DATA: Final = 0
REFRESH: Final = 1
TURNAROUND: Final = 2
WINDOW: Final = 3
CONFLICT: Final = 4
IDLE: Final = 5
FATES: Final = 6

PERIODS: Final = 512
"""Into which a run is cut at most."""

# A bank; where its pseudo channel and its bank group are, and their lanes.
OPEN_ROW: Final = 0
READ_FROM: Final = 1
WRITE_FROM: Final = 2
PRECHARGE_FROM: Final = 3
ACTIVATE_FROM: Final = 4
PSEUDO: Final = 5
GROUP: Final = 6
PSEUDO_LANE: Final = 7
GROUP_LANE: Final = 8
BANK_COLUMNS: Final = 9

# A pseudo channel; of a bank group only the last write counts.
LAST_WRITE: Final = 0
LAST_READ: Final = 1
PSEUDO_COLUMNS: Final = 2

# A request in a window. Apart from it stands a number: its bound, before which its next command
# does not go, its age, and its slot.
BANK: Final = 0
ROW: Final = 1
CLIENT: Final = 2
ARRIVED: Final = 3
ADMITTED: Final = 4
PUT_OFF: Final = 5
REQUEST_COLUMNS: Final = 6

SLOT_BITS: Final = 9
SLOT_MASK: Final = (1 << SLOT_BITS) - 1
BOUND_SHIFT: Final = 22
BELOW_BOUND: Final = (1 << BOUND_SHIFT) - 1
AGE_MASK: Final = BELOW_BOUND & ~SLOT_MASK
MOST_AGE: Final = AGE_MASK >> SLOT_BITS
EMPTY: Final = 1 << 62

# A request outside of the window: when it arrived and whose it is, and where it goes to.
QUEUED_WHEN: Final = 0
QUEUED_WHERE: Final = 1
QUEUED_COLUMNS: Final = 2
CLIENT_BITS: Final = 20
CLIENT_MASK: Final = (1 << CLIENT_BITS) - 1

# Lanes of the buses: of a channel, of each of its pseudo channels, of each bank group of these.
ROW_SLOTS: Final = 0
COLUMN_SLOTS: Final = 1
QUEUES: Final = 2
CHANNEL_LANES: Final = 3
NO_COLUMN: Final = 0
CARRIES: Final = 1
TURNS: Final = 2
NO_ACTIVATION: Final = 3
ACTIVATED: Final = 4
PSEUDO_LANES: Final = 5
GROUP_LANES: Final = 2
GROUP_NO_ACTIVATION: Final = 1

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
