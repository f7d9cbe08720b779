"""HBM with banks: which row is open, what else is on the bus and who came first decide.

Its loop is compiled (``banked_kernel``) and stops at the first completed burst.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fabric.engine.memory_counters import BusCycles, ChannelTraffic, ClientTraffic, MemoryCounters
from fabric.memories import banked_columns as c
from fabric.memories.address_mapping import AddressMapping
from fabric.memories.banked_kernel import advance, settle
from fabric.telling.errors import Refusal

if TYPE_CHECKING:
    from fabric.engine.off_chip import Burst
    from fabric.engine.unit import Unit
    from fabric.hardware.banked import BankedDescription

__all__ = ["BankedMemory"]

Table = NDArray[np.int64]

REQUESTS_PER_CALL: Final = 1 << 17
"""Some 20 milliseconds of the host's time."""

MOST_REQUESTS: Final = 1 << 28
"""Of one tile: more than ten gigabytes of the host's memory while they wait."""

_ROOM: Final = 256
"""For requests that wait outside of a window, at first."""

_PERIODS: Final = 512
"""Into which a run is cut at most."""

_NEVER: Final = -(1 << 40)


class BankedMemory:
    """Channels with banks behind one port per client.

    Attributes:
        requests: handed over so far.
        requests_per_call: after about so many the loop comes back from compiled code.
        log: the latest commands; see ``banked_columns``. None are kept where it has no row.
    """

    def __init__(
        self,
        description: BankedDescription,
        readers: list[Unit],
        writers: list[Unit],
        *,
        logged: int = 0,
    ) -> None:
        """Serve ``readers`` before ``writers`` in every cycle, each in the order given.

        Args:
            description: of the memory.
            readers: units that read.
            writers: units that write.
            logged: so many commands are kept.
        """
        self._description: Final = description
        self._clients: Final = [*readers, *writers]
        self._port: Final = {unit.index: port for port, unit in enumerate(self._clients)}
        self._settings: Final = settings_of(description, logged)
        self._made: Final = _tables(description, self._settings, len(self._clients), logged)
        self._ports: Final = self._made["clients"].reshape(-1, c.CLIENT_COLUMNS)
        self._channels: Final = self._made["channels"].reshape(-1, c.CHANNEL_COLUMNS)
        self.log: Final = self._made["log"].reshape(-1, c.LOG_COLUMNS)
        self._link()
        self._asked = [0] * len(self._clients)
        self._bursts = 0
        self.requests = 0
        self.requests_per_call = REQUESTS_PER_CALL

    def _link(self) -> None:
        """Let the loop work on the tables as they are."""
        self._advance = advance.over(**self._made)

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""
        return self._bursts > 0

    @property
    def bytes_moved(self) -> int:
        """Bytes of all requests that the memory has taken, whole requests each."""
        taken = self.requests - int(self._ports[:, c.LEFT].sum())
        return taken * self._description.request_bytes

    final_cycle = None
    """It does not outlast its clients."""

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way have been taken."""
        port = self._port[unit.index]
        return self._asked[port] - int(self._ports[port, c.LEFT])

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock.

        Raises:
            Refusal: it has more requests than the host has room for.
        """
        request_bytes = self._description.request_bytes
        requests = burst.requests(request_bytes)
        if requests > MOST_REQUESTS:
            raise Refusal(
                f"a tile of {burst.rows:,} rows of {burst.row_bytes:,} bytes takes {requests:,} "
                f"requests to the HBM: expected at most {MOST_REQUESTS:,}"
            )
        port = self._port[unit.index]
        row = self._ports[port]
        row[c.NEXT_BUNDLE] = unit.now + 1
        row[c.LEFT] = row[c.OPEN] = self._asked[port] = requests
        row[c.REQUESTS] += requests
        row[c.READY] = 0
        row[c.WRITE] = burst.write
        row[c.ROW_ADDRESS] = burst.address
        row[c.PITCH] = burst.pitch_bytes
        row[c.ROW_REQUESTS] = -(-burst.row_bytes // request_bytes)
        row[c.IN_ROW] = 0
        self._bursts += 1
        self.requests += requests

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Go on to the first completion, or up to ``horizon_cycle``."""
        control = self._made["control"]
        finished = 0
        while control[c.CYCLE] < horizon_cycle:
            # Between two calls Python looks whether there was a signal.
            finished, horizon_cycle = self._advance(horizon_cycle, self.requests_per_call, finished)
            if control[c.SHORT]:
                self._grow()
        self._bursts -= finished
        done = []
        for port in sorted(self._made["done"][:finished].tolist()):
            unit = self._clients[port]
            unit.answered(int(self._ports[port, c.READY]) + 1)
            done.append(unit)
        return done

    def _grow(self) -> None:
        """Make room for twice as many requests that wait outside of a window."""
        made, room = self._made, int(self._made["control"][c.ROOM])
        old = made["queues"].reshape(-1, room, c.QUEUED_COLUMNS)
        new = np.zeros((len(old), 2 * room, c.QUEUED_COLUMNS), np.int64)
        heads = self._channels[:, [c.READ_HEAD, c.WRITE_HEAD]].reshape(-1)
        for queue, head in enumerate(heads.tolist()):
            new[queue, :room] = np.roll(old[queue], -(head % room), axis=0)
        self._channels[:, [c.READ_HEAD, c.WRITE_HEAD]] = 0
        made["queues"] = new.reshape(-1)
        made["control"][c.ROOM] = 2 * room
        made["control"][c.SHORT] = 0
        self._link()

    def counters(self) -> MemoryCounters:
        """Return what became of the bandwidth; cycles up to the end of a period of 32."""
        made = self._made
        latest = int(self._ports[:, c.READY].max(initial=0))
        cycle = -(-max(latest, int(made["control"][c.CYCLE])) // c.WORD) * c.WORD
        # Settled are copies: commands of a run that goes on may still come in cycles before.
        tables = {name: made[name].copy() for name in ("channels", "buses", "periods", "control")}
        settle.over(**tables, settings=self._settings)(cycle)
        channels = tables["channels"].reshape(-1, c.CHANNEL_COLUMNS)
        period_bits = int(tables["control"][c.PERIOD_BITS])
        periods = tables["periods"].reshape(-1, c.FATES)[: -(-cycle >> period_bits) or 1]
        return MemoryCounters(
            tuple(_channel(row) for row in channels.tolist()),
            tuple(_client(*each) for each in zip(self._clients, self._ports.tolist(), strict=True)),
            1 << period_bits,
            tuple(BusCycles(*row) for row in periods.tolist()),
        )


def _channel(row: list[int]) -> ChannelTraffic:
    return ChannelTraffic(
        row[c.SERVED_READS],
        row[c.SERVED_WRITES],
        row[c.ROW_HITS],
        row[c.ROW_MISSES],
        row[c.ROW_CONFLICTS],
        BusCycles(*row[c.BUS : c.BUS + c.FATES]),
    )


def _client(unit: Unit, row: list[int]) -> ClientTraffic:
    return ClientTraffic(
        unit.index,
        row[c.HITS] + row[c.MISSES] + row[c.CONFLICTS],
        row[c.HITS],
        row[c.MISSES],
        row[c.CONFLICTS],
        row[c.QUEUED],
        row[c.WAITED],
        row[c.SERVED],
    )


def settings_of(description: BankedDescription, logged: int) -> Table:
    """Return what the loop is to know of ``description``."""
    made_of, timing = description.organization, description.timing
    window = max(description.read_window_bursts, description.write_window_bursts)
    bursts = description.request_bytes // made_of.burst_bytes
    settings = np.zeros(c.SETTINGS, np.int64)
    settings[c.BURSTS] = bursts
    settings[c.BURST_CYCLES] = timing.burst_cycles
    settings[c.PSEUDO_GAP] = max(timing.ccd_s_cycles, timing.burst_cycles)
    settings[c.GROUP_GAP] = max(timing.ccd_l_cycles, timing.burst_cycles)
    settings[c.CL] = timing.cl_cycles
    settings[c.CWL] = timing.cwl_cycles
    settings[c.RCD_READ] = timing.rcd_read_cycles
    settings[c.RCD_WRITE] = timing.rcd_write_cycles
    settings[c.RP] = timing.rp_cycles
    settings[c.RAS] = timing.ras_cycles
    settings[c.RC] = timing.rc_cycles
    settings[c.WR] = timing.wr_cycles
    settings[c.RTP] = timing.rtp_cycles
    settings[c.RRD_S] = timing.rrd_s_cycles
    settings[c.RRD_L] = timing.rrd_l_cycles
    settings[c.WTR_S] = timing.wtr_s_cycles
    settings[c.WTR_L] = timing.wtr_l_cycles
    settings[c.FAW] = timing.faw_cycles
    settings[c.RFC] = timing.rfc_cycles
    settings[c.REFI] = timing.refi_cycles if description.refreshes else c.FAR
    settings[c.READ_WINDOW] = description.read_window_bursts // bursts
    settings[c.WRITE_WINDOW] = description.write_window_bursts // bursts
    settings[c.ENTRIES] = 1 << (window - 1).bit_length()
    settings[c.WRITE_ENTRIES] = description.write_window_bursts
    settings[c.WRITE_HIGH] = window_share(description, description.write_high_percent)
    settings[c.WRITE_LOW] = -(
        -description.write_low_percent * description.write_window_bursts // 100
    )
    settings[c.FIRST_COME] = description.scheduler == "first come"
    settings[c.CHANNELS] = description.channels
    settings[c.CHANNEL_BANKS] = made_of.pseudo_channels * made_of.bank_groups * made_of.banks
    settings[c.PSEUDO_CHANNELS] = made_of.pseudo_channels
    groups = made_of.pseudo_channels * made_of.bank_groups
    settings[c.LANES] = (
        c.CHANNEL_LANES + made_of.pseudo_channels * c.PSEUDO_LANES + groups * c.GROUP_LANES
    )
    # Farthest ahead of a decision are the columns of a request that opens a row after all others.
    ahead = sum(vars(timing).values()) - timing.rfc_cycles - timing.refi_cycles
    ahead += window * (int(settings[c.GROUP_GAP]) + timing.rrd_l_cycles + 3)
    settings[c.RING_WORDS] = 1 << math.ceil(math.log2(ahead / c.WORD + 2))
    settings[c.PER_BUNDLE] = description.requests_per_bundle
    settings[c.REQUEST_BITS] = description.request_bytes.bit_length() - 1
    settings[c.PERIODS] = _PERIODS
    settings[c.LOGS] = logged > 0
    return settings


def window_share(description: BankedDescription, percent: int) -> int:
    """Return how many requests fill so much of the write window."""
    return percent * description.write_window_bursts // 100


def _tables(
    description: BankedDescription, settings: Table, clients: int, logged: int
) -> dict[str, Table]:
    """Return the tables that the loop works on, as they are in cycle 0."""
    made_of = description.organization
    channels, pseudos = description.channels, made_of.pseudo_channels
    of_channel = np.zeros((channels, c.CHANNEL_COLUMNS), np.int64)
    of_channel[:, [c.NEXT, c.WAITS_SINCE, c.QUEUES_SINCE]] = c.FAR
    of_channel[:, c.NEXT_REFRESH] = settings[c.REFI]
    groups = pseudos * made_of.bank_groups
    in_channel = np.arange(groups * made_of.banks)
    banks = np.zeros((channels, len(in_channel), c.BANK_COLUMNS), np.int64)
    banks[:, :, c.OPEN_ROW] = c.NO_ROW
    group = in_channel // made_of.banks
    pseudo = group // made_of.bank_groups
    number = np.arange(channels)[:, None]
    banks[:, :, c.PSEUDO] = number * pseudos + pseudo
    banks[:, :, c.GROUP] = number * groups + group
    banks[:, :, c.PSEUDO_LANE] = c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
    group_lanes = c.CHANNEL_LANES + pseudos * c.PSEUDO_LANES
    banks[:, :, c.GROUP_LANE] = group_lanes + group * c.GROUP_LANES
    of_channel[:, c.FREE_READ_ENTRIES] = description.read_window_bursts
    of_channel[:, c.FREE_WRITE_ENTRIES] = description.write_window_bursts
    room = max(_ROOM, 1 << (2 * description.requests_per_bundle).bit_length())
    windows = channels * int(settings[c.READ_WINDOW] + settings[c.WRITE_WINDOW])
    made = {
        "clients": np.zeros(clients * c.CLIENT_COLUMNS, np.int64),
        "channels": of_channel.reshape(-1),
        "pseudos": np.full(channels * pseudos * c.PSEUDO_COLUMNS, _NEVER),
        "groups": np.full(channels * groups, _NEVER),
        "banks": banks.reshape(-1),
        "windows": np.zeros(windows * c.REQUEST_COLUMNS, np.int64),
        "bounds": np.full(windows, c.FAR),
        "entries": np.full(channels * 2 * int(settings[c.ENTRIES]), _NEVER),
        "queues": np.zeros(channels * 2 * room * c.QUEUED_COLUMNS, np.int64),
        "buses": np.zeros(channels * int(settings[c.RING_WORDS] * settings[c.LANES]), np.int64),
        "periods": np.zeros(_PERIODS * c.FATES, np.int64),
        "mapping": AddressMapping(description).tables,
        "active": np.zeros(clients, np.int64),
        "done": np.zeros(clients, np.int64),
        "log": np.zeros(max(1, logged) * c.LOG_COLUMNS, np.int64),
        "control": np.zeros(c.CONTROLS, np.int64),
        "settings": settings,
    }
    made["control"][c.PERIOD_BITS] = c.WORD_BITS
    made["control"][c.ROOM] = room
    return made
