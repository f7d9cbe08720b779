"""The rule of channels: when an element is sent, visible and dequeued, and when its slot is free.

For element n of a channel of depth K, with hops of F cycles forward and B backward, producer clock
p and consumer clock c:

* a credit: p = max(p, d[n-K] + B), where d[m] is the clock at which element m was dequeued;
* visible:  v[n] = max(requested, p + F);
* dequeue:  c = max(c, v[n]), d[n] = c. A peek moves c and frees nothing.
* hear:     d[n] = v[n], if v[n] <= c. The clock c does not change.

With an interval of I cycles, p is at least I later than when element n-1 was sent. Element n is
shown from d[n-1] + I on. The consumer sees the end of the stream F cycles after the producer's end.
Without an interval, it sees the end in the same cycle.

With registers for waits, a unit that waited and then sent an element in cycle w looks at its
inputs from w + 1 on. With registers for ends, the interval also applies to the end of the stream:
the producer ends at least I cycles after it sent the last element, and the consumer sees the end at
least I cycles after it dequeued the last element.

The stamp of an element is v, and the stamp of a credit is d + B. Tasks call these functions,
compiled loops compile them, and traces translate some to SQL. ``tests/model`` is an independent
model of these rules.
"""

from __future__ import annotations


def spent_at(now: int, usable_cycle: int, next_send_cycle: int) -> int:
    """Return the producer's clock after it has spent a credit usable from ``usable_cycle``."""
    return max(now, usable_cycle, next_send_cycle)


def credit_part(waited_cycles: int, backward_cycles: int) -> int:
    """Return the last part of a wait for a slot, in which its credit was on the way back."""
    return min(waited_cycles, backward_cycles)


def links_part(before_cycle: int, now: int, visible_cycle: int, late_cycles: int) -> int:
    """Return the cycles of a wait for an element, from ``before_cycle`` on, that were for links.

    Shared links made the element visible ``late_cycles`` later.
    """
    return max(0, min(now, visible_cycle) - max(before_cycle, visible_cycle - late_cycles))


def visible_from(sent_cycle: int, forward_cycles: int, requested_cycle: int) -> int:
    """Return the first cycle in which an element is visible to the consumer."""
    return max(requested_cycle, sent_cycle + forward_cycles)


def set_out_at(visible_cycle: int, forward_cycles: int) -> int:
    """Return the cycle one hop before an element is visible: its slot counts as used from then."""
    return visible_cycle - forward_cycles


def shown_from(visible_cycle: int, next_take_cycle: int) -> int:
    """Return the first cycle in which the consumer can see and dequeue a visible element."""
    return max(visible_cycle, next_take_cycle)


def seen_at(now: int, shown_cycle: int, next_look_cycle: int) -> int:
    """Return the consumer's clock after it has seen an element or the end of the stream."""
    return max(now, shown_cycle, next_look_cycle)


def usable_from(taken_cycle: int, backward_cycles: int) -> int:
    """Return the first cycle in which the producer can use the credit of a dequeue."""
    return taken_cycle + backward_cycles


def taken_at(usable_cycle: int, backward_cycles: int) -> int:
    """Return the cycle of the dequeue whose credit is usable from ``usable_cycle``."""
    return usable_cycle - backward_cycles


def next_from(cycle: int, interval_cycles: int) -> int:
    """Return the first cycle of the next use after a use in ``cycle``; 0 without an interval."""
    return cycle + interval_cycles if interval_cycles else 0


def closed_from(ended_cycle: int, forward_cycles: int, interval_cycles: int) -> int:
    """Return the cycle in which the consumer sees that the producer ended in ``ended_cycle``."""
    return ended_cycle + forward_cycles if interval_cycles else ended_cycle


def dropped_at(visible_cycle: int, ended_cycle: int) -> int:
    """Return the cycle in which an element is dropped after the consumer's operator has ended.

    Elements are dropped once they are visible, so that they do not block the producer.
    """
    return max(visible_cycle, ended_cycle)
