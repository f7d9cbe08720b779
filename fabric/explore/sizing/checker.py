"""Check a certificate: that a recorded run completes with given depths in the cycles it claims.

What is proved is printed. Whoever made the certificate may have made up its record, too: only a
digest that is known from elsewhere, as the second argument, says that it is of the program meant.

It is a .npz file of the texts ``program``, ``options`` [channels] and ``digest``, and of integers:
``first`` (the event of each unit, and their number), ``events`` [.., 3] (kind, channel, amount),
``channels`` [.., 6] (producer, consumer, cycles forward and backward, elements, and how long wires
are busy with one, 0 where it is none of wires), ``clients`` (units of the memory, which stops
``shutdown_cycles`` after them), ``depths`` of channels, ``clocks`` after events, ``cycles`` and
``limit``. Kinds, those up to 8 after amount cycles of work: 0 see the next element, 1 dequeue it, 2
take a slot and send, 3 take a slot, 4 send into it, 5 see the end, 6 end, 7 work, 8 wait; and 9
read the clock, 10 the next sent is visible amount after the clock so many events ago as stand for
the channel, or 11 in cycle amount, 12 recall when the next, element amount, was visible, 13 be busy
until amount after that, 14 wait until amount after the next is visible. What a unit has not
dequeued when it ends is so then. Wires send and show nothing while they are busy with the one
before, and carry the end, too.

No clock is before what it follows from, and nothing follows from itself: so nothing gets stuck, and
the clocks of the run are no later, for they are the least of which that is so.
"""

from __future__ import annotations

import sys
from bisect import bisect
from collections import defaultdict
from graphlib import TopologicalSorter
from hashlib import sha256
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

RECORD = {"program": "U0", "options": "U1", "first": "i1", "events": "i2", "channels": "i2"}
RECORD |= {"clients": "i1", "shutdown_cycles": "i0"}
FORM = RECORD | {"digest": "U0", "depths": "i1", "clocks": "i1", "cycles": "i0", "limit": "i0"}
MOST, CLAIMS = 1 << 23, ("program", "cycles", "limit", "digest")
END_OF = {0: 1, 1: 1, 2: 0, 3: 0, 4: 0, 5: 1, 12: 1, 14: 1}


def digest_of(file: dict[str, Any]) -> str:
    """Return the digest of the record in a certificate: of all but depths, clocks and claims."""
    its = [file[name] for name in RECORD]
    parts = [repr((array.dtype.str, array.shape)).encode() + array.tobytes() for array in its]
    return sha256(b"".join(parts)).hexdigest()


def check(path: str | Path, digest: str = "") -> list[str]:
    """Return the fault of a certificate; empty if it proves its claim.

    An empty ``digest`` accepts any record.
    """
    try:
        with ZipFile(path if Path(path).is_file() else "no file") as its:
            sizes = [each.file_size for each in its.infolist() if each.compress_type in (0, 8)]
            few = len(its.infolist()) == len(sizes) == len(FORM) and sum(sizes) <= 8 * MOST
            file = {name: np.lib.format.read_array(its.open(f"{name}.npy")) for name in FORM if few}
        few = few and max(array.size + sum(array.shape) for array in file.values()) <= MOST
        if {name: f"{array.dtype.kind}{array.ndim}" for name, array in file.items() if few} != FORM:
            return [f"it has other arrays than a certificate, or more than {MOST:,} numbers"]
        if not digest_of(file) == file["digest"] == (digest or file["digest"]):
            return ["it has the digest of another record"]
        return list(_wrong(**{name: array.tolist() for name, array in file.items()}))
    except Exception as error:  # noqa: BLE001 - of numpy, for what is not there, for a circle
        return [f"it is no certificate: {error!r}"]


def _wrong(first: Any, events: Any, channels: Any, depths: Any, clocks: Any, **of: Any) -> Any:  # noqa: C901, PLR0912 - one switch
    """Yield the faults; raise an error if a number refers to a missing entry.

    The clocks of a circle are all equal, so circles are sought among events without delay, and
    along units between these events.
    """
    if first[0] != 0 or first != sorted(first) or not first[-1] == len(events) == len(clocks):
        yield "its events are not all there"
    if not len(channels) == len(depths) == len(of["options"]) == len(set(of["options"])):
        yield "its channels are not all there"
    ends, finish, busy = dict(enumerate(channels)), dict[int, int](), defaultdict[int, int](int)
    seen, follows = list[Any](), list[Any]()
    sent, slots, taken, ended, circle = (defaultdict[int, list[Any]](list) for _ in range(5))
    for unit, (start, stop) in enumerate(pairwise(first)):
        clock, asked, recalled = 0, 0, tuple[int, ...]()
        for event in range(start, stop):
            (kind, on, amount), before, clock = events[event], clock, clocks[event]
            if (
                kind not in range(15)
                or (kind in END_OF and ends[on][END_OF[kind]] != unit)
                or (amount < 0 and kind not in (10, 13, 14))
                or (kind == 10 and not 0 <= on <= event - start)
                or clock < max(before + amount * (kind < 9), busy[on] * (kind in (2, 3)))
                or {4: len(slots[on]) == len(sent[on]), 12: amount != len(taken[on])}.get(kind)
                or (kind != 5 if unit in finish else kind == 5 and len(taken[on]) < ends[on][4])
            ):
                yield f"event {event} is nothing that its unit could do then"
            if kind in (0, 1, 14):
                seen.append((event, on, len(taken[on]), amount if kind == 14 else 0))
            slots[on] += [event] * (kind in (2, 3))
            if kind in (2, 4):
                sent[on].append((event, max(clock + ends[on][2], asked)))
                asked, busy[on] = 0, clock + ends[on][5]
            elif kind in (1, 5):
                (taken if kind == 1 else ended)[on].append(event)
            elif kind == 6:
                finish[unit] = event
            elif kind in (10, 11):
                asked = amount + (clocks[event - on] if kind == 10 else 0)
            elif kind in (12, 13):
                recalled = (on, amount) if kind == 12 else recalled
                seen.append((event, *recalled, amount if kind == 13 else 0))
    for event, on, at, later in seen:
        shown = clocks[taken[on][at - 1]] + ends[on][5] if at and ends[on][5] else 0
        follows.append((event, sent[on][at][0], max(sent[on][at][1], shown) + later))
    for on, (source, target, forward, backward, elements, interval) in ends.items():
        every = len(sent[on]) == elements >= len(slots[on]) - depths[on] and len(ended[on]) == 1
        if not every or min(forward, backward, depths[on], interval + 1) < 1:
            yield f"channel {on} has other elements or ends, takes no time, or is never free"
        free, end = [(event, clocks[event]) for event in taken[on]], finish[source]
        free += [(finish[target], visible) for _, visible in sent[on][len(free) :]]
        for event, (earlier, cycle) in zip(slots[on][depths[on] :], free, strict=False):
            follows.append((event, earlier, max(cycle, clocks[earlier]) + backward))
        follows += [(event, end, clocks[end] + forward * (interval > 0)) for event in ended[on]]
    for event, earlier, cycle in follows:
        if clocks[event] < max(cycle, clocks[earlier]):
            yield f"event {event} is before what it follows from"
        if clocks[event] == clocks[earlier]:
            circle[event].append(earlier)
    for earlier, event in pairwise(sorted({*circle, *chain(*circle.values())})):
        circle[event] += [earlier] * (bisect(first, earlier) == bisect(first, event))
    TopologicalSorter(circle).prepare()
    last = [clocks[max(finish[unit], first[unit + 1] - 1)] for unit in of["clients"]]
    shut_down = [clock + of["shutdown_cycles"] for clock in last]
    if not max(0, *clocks, *shut_down) <= of["cycles"] <= of["limit"]:
        yield "it takes more cycles than it claims, or than its limit"


if __name__ == "__main__":
    if wrong := check(*sys.argv[1:]):
        sys.exit("\n".join(wrong))
    print(*(f"{each}: {np.load(sys.argv[1])[each].tolist()!a}" for each in CLAIMS), sep="\n")  # noqa: T201
