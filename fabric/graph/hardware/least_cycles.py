"""The fewest cycles of accesses to off-chip memory, for lower bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.graph.hardware.description import FlatDescription, OffChipDescription

if TYPE_CHECKING:
    from fabric.graph.hardware.memory_models import BankedDescription


def least_burst_cycles(memory: OffChipDescription, requests: int, *, write: bool) -> int:
    """Return the fewest cycles from the start of a burst until the client sees it complete.

    The burst starts in cycle t. One bundle a cycle arrives, the first one in cycle t + 1.

    * Flat: a channel starts its first request in cycle t + 2 at the earliest. The last start
      belongs to the last bundle or to the busiest channel. Start-up and latency follow.
    * With banks: the first column command is in cycle t + 3 at the earliest. Commands of the
      last request are ``ccd_l_cycles`` apart. The busiest pseudo channel is also refreshed. The
      data of a read follow the last command.

    The client sees the completion one cycle later. A prefetched tile may be ready at its request.
    """
    if type(memory) is FlatDescription:
        bundles = -(-requests // memory.requests_per_bundle)
        queue = _flat_queue_cycles(memory, requests)
        answer = memory.startup_cycles + memory.latency_cycles
        return 2 + max(bundles - 1, queue) + answer + 1
    # Runs with the flat memory do not wait for imports of other models.
    from fabric.graph.hardware.memory_models import BankedDescription, FixedDescription

    if type(memory) is BankedDescription:
        if not write and memory.prefetch_requests:
            requests -= memory.prefetch_requests
            if requests <= 0:
                return 1
        dram = memory.dram
        bursts = memory.request_bytes // dram.burst_bytes
        bundles = -(-requests // memory.requests_per_bundle)
        last = (bursts - 1) * max(dram.ccd_l_cycles, dram.burst_cycles)
        data = 0 if write else dram.cl_cycles + dram.burst_cycles
        return 3 + max(bundles - 1 + last, _banked_queue_cycles(memory, requests)) + data + 1
    if type(memory) is FixedDescription:
        return memory.burst_cycles(requests)
    return 0


def least_shared_cycles(memory: OffChipDescription, reads: int, writes: int) -> int:
    """Return the fewest cycles until all clients have seen their requests complete, 0 if unknown.

    The cycles count from the start of the first burst. The busiest channel (or pseudo channel)
    serves at least its share of the requests.
    """
    requests = reads + writes
    if type(memory) is FlatDescription:
        answer = memory.startup_cycles + memory.latency_cycles
        return 2 + _flat_queue_cycles(memory, requests) + answer + 1
    from fabric.graph.hardware.memory_models import BankedDescription

    if type(memory) is BankedDescription:
        dram = memory.dram
        data = 0 if writes else dram.cl_cycles + dram.burst_cycles
        return 3 + _banked_queue_cycles(memory, requests) + data + 1
    return 0


def most_ahead_requests(memory: OffChipDescription) -> int:
    if type(memory) is FlatDescription:
        return 0
    from fabric.graph.hardware.memory_models import BankedDescription

    return memory.prefetch_requests if type(memory) is BankedDescription else 0


def _flat_queue_cycles(memory: FlatDescription, requests: int) -> int:
    return (-(-requests // memory.channels) - 1) * memory.initiation_interval_cycles


def _banked_queue_cycles(memory: BankedDescription, requests: int) -> int:
    # Commands wait for the bus, and rfc_cycles for each refresh. A due refresh first waits for
    # requests to open rows. Only the part of this wait above rfc_cycles delays further refreshes.
    dram = memory.dram
    bursts = memory.request_bytes // dram.burst_bytes
    of_channel = -(-requests // memory.channels)
    of_pseudo_channel = -(-requests // (memory.channels * dram.pseudo_channels))
    apart = max(dram.ccd_s_cycles, dram.burst_cycles)
    cycles = needed = max((of_pseudo_channel * bursts - 1) * apart, of_channel * bursts - 1)
    longer = max(dram.rfc_cycles - apart, 0) if memory.refreshes else 0
    late = max(most_drain_cycles(memory) - dram.rfc_cycles, 0)
    while cycles < (total := needed + max(cycles - late, 0) // dram.refi_cycles * longer):
        cycles = total
    return cycles


def most_drain_cycles(memory: BankedDescription) -> int:
    """Return the most cycles that a due refresh waits for requests to open rows.

    Each bank may have an open row with a pending request. The bus turns to reads once and to
    writes once. Other buses may take command slots.
    """
    dram = memory.dram
    banks = dram.bank_groups * dram.banks
    opened = max(dram.rcd_read_cycles, dram.rcd_write_cycles) + 2
    turn = dram.cl_cycles + dram.cwl_cycles + dram.burst_cycles + dram.wtr_l_cycles + 2
    of_bus = banks * max(dram.ccd_l_cycles, dram.burst_cycles) + 2 * turn
    return opened + of_bus + banks * dram.pseudo_channels
