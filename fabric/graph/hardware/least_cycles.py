"""The least cycles in which an off-chip memory of the fabric's answers, whatever else there is.

They are what lower bounds rest on before anything runs. Of a user's memory nothing is known, nor of
one that extends one of the fabric's: it may do otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.graph.hardware.description import FlatDescription, OffChipDescription

if TYPE_CHECKING:
    from fabric.graph.hardware.memory_models import BankedDescription


def least_burst_cycles(memory: OffChipDescription, requests: int, *, write: bool) -> int:
    """Return the cycles from handing a burst over to seeing it complete.

    Handed over in cycle t, its first bundle is taken in t + 1, and one a cycle from there on.

    * Flat: its last request starts in cycle t + bundles + 1 at the earliest. A channel starts its
      first request in cycle t + 2 at the earliest, and the one that has most of them starts its
      last one so many intervals later. What has started is ready after start-up and latency.
    * With banks: its last request comes to a channel in cycle t + bundles + 1, its first column
      command goes in the next one at the earliest, and the others ``ccd_l_cycles`` apart. The
      pseudo channel that has most of them goes on from column command to column command, and is
      refreshed. The last one is that of a write that is ready, and has the data of a read after it.

    What is ready is seen a cycle later; a fixed memory says when that is. A tile that was fetched
    ahead may be ready when it is asked for.

    Args:
        memory: of any model.
        requests: of the burst, at least 1.
        write: to the memory; else from it.
    """
    if type(memory) is FlatDescription:
        bundles = -(-requests // memory.requests_per_bundle)
        queue = _flat_queue_cycles(memory, requests)
        answer = memory.startup_cycles + memory.latency_cycles
        return 2 + max(bundles - 1, queue) + answer + 1
    # Most runs are on the memory above, and need not import the others.
    from fabric.graph.hardware.memory_models import BankedDescription, FixedDescription

    if type(memory) is BankedDescription:
        if not write and memory.prefetch_requests:
            requests -= memory.prefetch_requests
            if requests <= 0:
                return 1
        timing, bursts = memory.timing, memory.request_bytes // memory.organization.burst_bytes
        bundles = -(-requests // memory.requests_per_bundle)
        last = (bursts - 1) * max(timing.ccd_l_cycles, timing.burst_cycles)
        data = 0 if write else timing.cl_cycles + timing.burst_cycles
        return 3 + max(bundles - 1 + last, _banked_queue_cycles(memory, requests)) + data + 1
    if type(memory) is FixedDescription:
        return memory.burst_cycles(requests)
    return 0


def least_shared_cycles(memory: OffChipDescription, reads: int, writes: int) -> int:
    """Return the cycles in which all clients see requests complete, from when one has some.

    That is from the cycle in which the first of them may be handed over, to that in which one who
    asked sees the last one complete; 0 where clients do not share anything that is known.

    * Flat: one of the channels has at least its share of them, and its last one starts so many
      intervals after its first.
    * With banks: one of the pseudo channels has at least its share, and goes on from column command
      to column command; after the last one comes the data, where all of them are reads.

    Args:
        memory: of any model.
        reads: requests of all clients that read.
        writes: requests of those that write; at least 1 of either.
    """
    requests = reads + writes
    if type(memory) is FlatDescription:
        answer = memory.startup_cycles + memory.latency_cycles
        return 2 + _flat_queue_cycles(memory, requests) + answer + 1
    from fabric.graph.hardware.memory_models import BankedDescription

    if type(memory) is BankedDescription:
        timing = memory.timing
        data = 0 if writes else timing.cl_cycles + timing.burst_cycles
        return 3 + _banked_queue_cycles(memory, requests) + data + 1
    return 0


def most_ahead_requests(memory: OffChipDescription) -> int:
    """Return how many requests of a client the memory serves before they are asked for, at most."""
    if type(memory) is FlatDescription:
        return 0
    from fabric.graph.hardware.memory_models import BankedDescription

    return memory.prefetch_requests if type(memory) is BankedDescription else 0


def _flat_queue_cycles(memory: FlatDescription, requests: int) -> int:
    """Return the cycles between the first and the last start of the channel that has most."""
    return (-(-requests // memory.channels) - 1) * memory.initiation_interval_cycles


def _banked_queue_cycles(memory: BankedDescription, requests: int) -> int:
    """Return the cycles between the first and the last column command of who has most.

    Those of a pseudo channel are as far apart as its bus and ``ccd_s_cycles`` say, those of a
    channel one cycle. Of so many cycles as there are between two refreshes, ``rfc_cycles`` pass
    between two commands: where the commands need some time, they need that for each whole such
    time, too, and so on. A refresh that is due waits until each row that was opened has served the
    request it was opened for; where that takes no longer than a refresh it changes nothing.
    """
    made_of, timing = memory.organization, memory.timing
    bursts = memory.request_bytes // made_of.burst_bytes
    of_channel = -(-requests // memory.channels)
    of_pseudo_channel = -(-requests // (memory.channels * made_of.pseudo_channels))
    apart = max(timing.ccd_s_cycles, timing.burst_cycles)
    cycles = needed = max((of_pseudo_channel * bursts - 1) * apart, of_channel * bursts - 1)
    longer = max(timing.rfc_cycles - apart, 0) if memory.refreshes else 0
    late = max(most_drain_cycles(memory) - timing.rfc_cycles, 0)
    while cycles < (found := needed + max(cycles - late, 0) // timing.refi_cycles * longer):
        cycles = found
    return cycles


def most_drain_cycles(memory: BankedDescription) -> int:
    """Return how long after it is due a refresh waits for columns at most.

    Each bank has one row open that has not served its request. When all of these rows may be read
    or written, a bus has turned to one kind of them, and goes on to the other when these are done;
    a column may have to wait for the slot of each one of another bus.
    """
    made_of, timing = memory.organization, memory.timing
    banks = made_of.bank_groups * made_of.banks
    opened = max(timing.rcd_read_cycles, timing.rcd_write_cycles) + 2
    turn = timing.cl_cycles + timing.cwl_cycles + timing.burst_cycles + timing.wtr_l_cycles + 2
    of_bus = banks * max(timing.ccd_l_cycles, timing.burst_cycles) + 2 * turn
    return opened + of_bus + banks * made_of.pseudo_channels
