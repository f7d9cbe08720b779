"""A certificate with every kind of event, and what is false when one number of it is changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fabric.explore.sizing.checker import FORM, RECORD, digest_of
from fabric.explore.sizing.proofs import write_certificate
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Record, RecordedChannel

__all__ = ["DAMAGES", "DEPTHS", "KINDS", "Arrays", "every_kind", "saved", "signed", "undamaged"]

Arrays = dict[str, Any]
"""Of a certificate, by name."""

Damage = Callable[[Arrays], None]
"""Changes the arrays given."""

DEPTHS = (2, 3, 1, 1)

KINDS = {
    name: getattr(e, name)
    for name in (
        "SEE", "TAKE", "SEND", "RESERVE", "PUT", "END", "FINISH", "WORK", "WAIT", "NOTE", "LATE",
        "AT", "ARRIVAL", "UNTIL", "IDLE",
    )
}  # fmt: skip
WORKED = [name for name, kind in KINDS.items() if kind <= e.WAIT]


def every_kind(interval_cycles: int = 0) -> Record:
    """Return a record of four units with all that a unit can do, and one slot that stays unused.

    Its channels are wires where there is an interval. Of what the stage sends, the merge leaves two
    elements over. The off-chip memory serves the source and the reader, and stops 5 cycles after
    the later one.
    """
    ends = [(0, 1, 1, 1, 4, 0), (0, 2, 2, 3, 3, 1), (1, 2, 1, 1, 4, 0), (2, 3, 1, 2, 3, 0)]
    channels = tuple(
        RecordedChannel(f"u{to}.{at}", f"u{by} -> u{to}", by, to, 9, out, back, its, 1, unused)
        for at, (by, to, out, back, its, unused) in enumerate(ends)
    )
    source = [
        ("WAIT", 0, 3), ("NOTE", 0, 0), ("SEND", 0, 0), ("SEND", 0, 1), ("LATE", 3, 9),
        ("SEND", 1, 0), ("WORK", 0, 2), ("RESERVE", 0, 0), ("WORK", 0, 1), ("PUT", 0, 4),
        ("AT", 0, 60), ("SEND", 1, 0), ("SEND", 0, 30), ("SEND", 1, 5), ("RESERVE", 1, 2),
        ("FINISH", 0, 1),
    ]  # fmt: skip
    stage = []
    for number in range(4):
        stage += [
            ("SEE", 0, 9 * number), ("ARRIVAL", 0, number), ("TAKE", 0, 1), ("UNTIL", 0, 6),
            ("RESERVE", 2, 1), ("WORK", 0, 1), ("PUT", 2, 2),
        ]  # fmt: skip
    stage += [("END", 0, 0), ("FINISH", 0, 2)]
    merge = [
        ("IDLE", 1, 1), ("TAKE", 1, 0), ("TAKE", 2, 3), ("SEND", 3, 1), ("SEE", 1, 0),
        ("TAKE", 1, 4), ("WORK", 0, 90), ("SEND", 3, 0), ("TAKE", 2, 0), ("IDLE", 1, -1),
        ("TAKE", 1, 2), ("SEND", 3, 0), ("FINISH", 0, 40), ("END", 1, 0), ("END", 2, 0),
    ]  # fmt: skip
    reader = [
        ("TAKE", 3, 0), ("WAIT", 0, 30), ("TAKE", 3, 40), ("WORK", 0, 10), ("TAKE", 3, 0),
        ("END", 3, 70), ("FINISH", 0, 1),
    ]  # fmt: skip
    its = [source, stage, merge, reader]
    events = [(on << e.SHIFT | KINDS[name], amount) for unit in its for name, on, amount in unit]
    first = np.cumsum([0, *map(len, its)])
    names = ("u0", "u1", "u2", "u3")
    return Record(
        "every", names, channels, first, np.array(events), 500, (0, 3), 5,
        interval_cycles=interval_cycles,
    )  # fmt: skip


def undamaged(folder: Path, interval_cycles: int = 0) -> Arrays:
    """Return the arrays of a certificate of it, with limits that are just kept."""
    path = folder / "undamaged.npz"
    write_certificate(path, every_kind(interval_cycles), np.array(DEPTHS), 10_000)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["limit"] = arrays["cycles"]
    return arrays


def signed(arrays: Arrays) -> None:
    """Let the digest be that of what is there."""
    arrays["digest"] = np.array(digest_of(arrays))


def saved(arrays: Arrays, path: Path) -> Path:
    """Write arrays."""
    np.savez(path, **arrays)
    return path


# ------------------------------------------------------------------------------ helpers


def _number(arrays: Arrays, kind: str, waited: bool | None = None, on: int | None = None) -> int:
    """Return the first event of a kind: one after a wait or not, on any channel or on this."""
    before = 0
    for unit, start in enumerate(arrays["first"][:-1]):
        for number in range(start, arrays["first"][unit + 1]):
            its, channel, amount = arrays["events"][number]
            least = (0 if number == start else before) + (amount if its <= e.WAIT else 0)
            before = arrays["clocks"][number]
            if (
                its == KINDS[kind]
                and waited in (None, before > least)
                and on in (None, channel)
                and before > 0
            ):
                return int(number)
    raise LookupError(kind, waited, on)


def _put(arrays: Arrays, name: str, place: Any, change: Any) -> None:
    """Set a number of an array; that of other certificates stays."""
    arrays[name] = arrays[name].copy()
    arrays[name][place] = change


def _add(arrays: Arrays, name: str, place: Any, change: int) -> None:
    _put(arrays, name, place, arrays[name][place] + change)


def _early(arrays: Arrays, kind: str, waited: bool) -> None:
    _add(arrays, "clocks", _number(arrays, kind, waited), -1)


def _late(arrays: Arrays, kind: str) -> None:
    """Let an event be later than what its unit does next, at once or after its work."""
    kinds, clocks = arrays["events"][:, 0], arrays["clocks"]
    work = np.where(kinds <= e.WAIT, arrays["events"][:, 2], 0)
    tight = np.append(clocks[1:] == clocks[:-1] + work[1:], False)
    tight[arrays["first"][1:] - 1] = False
    _add(arrays, "clocks", np.flatnonzero(tight & (kinds == KINDS[kind]))[0], 1)


def _amount(arrays: Arrays, kind: str, change: int, waited: bool | None = None) -> None:
    _add(arrays, "events", (_number(arrays, kind, waited), 2), change)


def _no_event(arrays: Arrays, kind: str, last: bool = False) -> None:
    """Leave an event out, with its clock."""
    kinds = arrays["events"][:, 0]
    number = int(np.flatnonzero(kinds == KINDS[kind])[-1 if last else 0])
    arrays["first"] = arrays["first"] - (arrays["first"] > number)
    arrays["events"] = np.delete(arrays["events"], number, 0)
    arrays["clocks"] = np.delete(arrays["clocks"], number)


def _end_first(arrays: Arrays) -> None:
    """Let the reader see the end, in its cycle, and then dequeue the last element at once."""
    _swap(arrays, "events", 65, 66)
    _put(arrays, "clocks", 65, arrays["clocks"][66])


def _dequeue_first(arrays: Arrays) -> None:
    """Let the stage dequeue its first element, and recall then when that was visible."""
    _swap(arrays, "events", 17, 18)
    _put(arrays, "clocks", 17, arrays["clocks"][18])


def _twice(arrays: Arrays, kind: str) -> None:
    """Let the last event of a kind happen once more, without work."""
    number = int(np.flatnonzero(arrays["events"][:, 0] == KINDS[kind])[-1])
    again = arrays["events"][number] * (1, 1, 0)
    arrays["first"] = arrays["first"] + (arrays["first"] > number)
    arrays["events"] = np.insert(arrays["events"], number + 1, again, 0)
    arrays["clocks"] = np.insert(arrays["clocks"], number + 1, arrays["clocks"][number])


def _swap(arrays: Arrays, name: str, one: Any, other: Any) -> None:
    arrays[name] = changed = arrays[name].copy()
    changed[one], changed[other] = arrays[name][other].copy(), changed[one].copy()


def _without(arrays: Arrays, name: str) -> None:
    del arrays[name]


def _made(arrays: Arrays, name: str, change: Callable[[Any], Any]) -> None:
    arrays[name] = change(arrays[name])


def _as(arrays: Arrays, name: str, kind: type) -> None:
    arrays[name] = arrays[name].astype(kind)


DAMAGES: dict[str, tuple[Damage, bool]] = {}
"""By name: what is changed, and whether the digest is made anew so that only clocks tell."""


def _damage(name: str, damage: Damage, sign: bool = True) -> None:
    assert name not in DAMAGES, name
    DAMAGES[name] = damage, sign


# --------------------------------------------------------------------------------- clocks

for _kind in KINDS:
    for _waited in (False, True):
        if _waited and _kind not in ("SEE", "TAKE", "SEND", "RESERVE", "END", "UNTIL", "IDLE"):
            continue
        _why = "after a wait" if _waited else "with no wait"
        _damage(f"{_kind} {_why} is early", partial(_early, kind=_kind, waited=_waited))
    if _kind != "FINISH":
        _damage(f"{_kind} is later than the next", partial(_late, kind=_kind))
_damage("a slot left over is taken early", lambda a: _add(a, "clocks", 41, -1))
_damage("all is one cycle early", lambda a: _made(a, "clocks", lambda its: its - 1))
_damage("all happens at once", lambda a: _made(a, "clocks", lambda its: its * 0))
_damage("one unit is early", lambda a: _add(a, "clocks", slice(46, 61), -1))
_damage("a clock is negative", lambda a: _put(a, "clocks", 0, -1))
_damage("a clock is past all", lambda a: _put(a, "clocks", -1, 1 << 62))
_damage("a clock is the least there is", lambda a: _put(a, "clocks", 40, -(1 << 63)))
_damage("clocks are reversed", lambda a: _made(a, "clocks", lambda its: its[::-1].copy()))
_damage("clocks of two units are swapped", lambda a: _swap(a, "clocks", 0, 61))

# ---------------------------------------------------------------------------------- work

for _kind in WORKED:
    _damage(f"{_kind} has more work", partial(_amount, kind=_kind, change=1, waited=False))
    _damage(f"{_kind} has work below 0", partial(_amount, kind=_kind, change=-1000))
    _damage(f"{_kind} has less work, unsigned", partial(_amount, kind=_kind, change=-1), sign=False)
for _kind in ("LATE", "AT", "UNTIL", "IDLE"):
    _damage(f"{_kind} is for longer", partial(_amount, kind=_kind, change=1000))
_damage("a request counts from behind it", lambda a: _put(a, "events", 4, (e.LATE, -1, -1000)))
_damage("a request counts from another unit", lambda a: _put(a, "events", 4, (e.LATE, 5, -1000)))
_damage("a request is for a cycle below 0", lambda a: _put(a, "events", (10, 2), -1))
_damage("a later element has arrived", lambda a: _put(a, "events", (17, 2), 3))
_damage("an element has arrived that is gone", _dequeue_first)
_damage("no element has arrived", lambda a: _put(a, "events", (17, 2), 4))
_damage("an element below 0 has arrived", lambda a: _put(a, "events", (17, 2), -1))

# -------------------------------------------------------------------------------- events

for _kind in ("TAKE", "SEND", "RESERVE", "PUT", "END", "FINISH", "ARRIVAL"):
    _damage(f"{_kind} is missing", partial(_no_event, kind=_kind))
for _kind in ("SEE", "WORK", "WAIT", "NOTE", "LATE", "AT", "UNTIL", "IDLE"):
    _damage(f"{_kind} is missing, unsigned", partial(_no_event, kind=_kind, last=True), sign=False)
for _kind in ("TAKE", "SEND", "RESERVE", "PUT", "END", "FINISH"):
    _damage(f"{_kind} happens twice", partial(_twice, kind=_kind))
_damage("a unit works behind its end", lambda a: _swap(a, "events", 64, 67))
_damage("a unit ends before it sends", lambda a: _swap(a, "events", 57, 58))
_damage("the end is seen before the last element", _end_first)
_damage("a slot is filled before it is taken", lambda a: _swap(a, "events", 34, 36))
_damage("events of two units are swapped", lambda a: _swap(a, "events", 0, 61))
_damage("a kind is above all", lambda a: _put(a, "events", (1, 0), 15))
_damage("a kind is below all", lambda a: _put(a, "events", (1, 0), -1))
_damage("what is sent is dequeued instead", lambda a: _put(a, "events", (2, 0), e.TAKE))
_damage("what is dequeued is sent instead", lambda a: _put(a, "events", (18, 0), e.SEND))
_damage("what is dequeued is seen only", lambda a: _put(a, "events", (18, 0), e.SEE))
_damage("what is sent is a slot only", lambda a: _put(a, "events", (2, 0), e.RESERVE))
_damage("an end is work", lambda a: _put(a, "events", (67, 0), e.WORK))
_damage("a channel is above all", lambda a: _put(a, "events", (2, 1), 4))
_damage("a channel is below all", lambda a: _put(a, "events", (2, 1), -4))
_damage("it is sent on another channel of the unit", lambda a: _put(a, "events", (2, 1), 1))
_damage("it is dequeued from a channel of others", lambda a: _put(a, "events", (18, 1), 2))
_damage("a unit begins later", lambda a: _add(a, "first", 1, 1))
_damage("a unit begins earlier", lambda a: _add(a, "first", 2, -1))
_damage("units are not in order", lambda a: _swap(a, "first", 1, 2))
_damage("an end is of two units", lambda a: _made(a, "first", lambda its: np.append(its, [67, 68])))
_damage("a clock is too many", lambda a: _made(a, "clocks", lambda its: np.append(its, its[-1])))
_damage("the first unit begins late", lambda a: _put(a, "first", 0, 1))
_damage("the last unit ends early", lambda a: _add(a, "first", -1, -1))
_damage("the last unit ends late", lambda a: _add(a, "first", -1, 1))
_damage("there is one unit less", lambda a: _made(a, "first", lambda its: its[:-1]))
_damage("there are no units", lambda a: _made(a, "first", lambda its: its[:0]))

# ------------------------------------------------------------------------------ channels

for _on, _option in enumerate(("u1.0", "u2.1", "u2.2", "u3.3")):
    _damage(f"{_option} has a slot less", partial(_add, name="depths", place=_on, change=-1))
    _damage(f"{_option} has slots below 0", partial(_put, name="depths", place=_on, change=-9))
    for _place, _what in enumerate(("producer", "consumer", "forward", "backward", "elements")):
        _cycles = 1000 if _place in (2, 3) else 1
        _more = partial(_add, name="channels", place=(_on, _place), change=_cycles)
        _damage(f"{_option} has another {_what}", _more)
    for _place, _what in ((2, "forward"), (3, "backward")):
        _none = partial(_put, name="channels", place=(_on, _place), change=0)
        _damage(f"{_option} takes no time {_what}", _none)
    _fewer = partial(_add, name="channels", place=(_on, 4), change=-1)
    _damage(f"{_option} has an element less", _fewer)
    _slower = partial(_add, name="channels", place=(_on, 5), change=20)
    _damage(f"{_option} is one of slow wires", _slower)
    _damage(f"{_option} is busy below 0", partial(_put, name="channels", place=(_on, 5), change=-1))
_damage("time forward is below 0", lambda a: _put(a, "channels", (0, 2), -1))
_damage("time backward is below 0", lambda a: _put(a, "channels", (0, 3), -1))
_damage("elements are below 0", lambda a: _put(a, "channels", (0, 4), -1))
_damage("a producer is below all", lambda a: _put(a, "channels", (0, 0), -4))
_damage("a consumer is below all", lambda a: _put(a, "channels", (0, 1), -3))
_damage("a channel is turned round", lambda a: _swap(a, "channels", (0, 0), (0, 1)))
_damage("two channels are swapped", lambda a: _swap(a, "channels", 0, 2))
_damage("two depths are swapped", lambda a: _swap(a, "depths", 0, 2))
_damage("a channel is missing", lambda a: _made(a, "channels", lambda its: its[:-1]))
_damage("a depth is missing", lambda a: _made(a, "depths", lambda its: its[:-1]))
_damage("a depth is too many", lambda a: _made(a, "depths", lambda its: np.append(its, 1)))
_damage("an option is missing", lambda a: _made(a, "options", lambda its: its[:-1]))
_damage("an option is too many", lambda a: _made(a, "options", lambda its: np.append(its, "z")))
_damage("an option is there again", lambda a: _made(a, "options", lambda its: its[[0, 1, 2, 3, 0]]))
_damage("two options are the same", lambda a: _put(a, "options", 0, a["options"][1]))

# -------------------------------------------------------------------------------- claims

_damage("a cycle less is claimed", lambda a: _add(a, "cycles", (), -1))
_damage("cycles below 0 are claimed", lambda a: _put(a, "cycles", (), -1))
_damage("more than the limit are claimed", lambda a: _add(a, "cycles", (), 1))
_damage("the limit is a cycle less", lambda a: _add(a, "limit", (), -1))
_damage("the limit is below 0", lambda a: _put(a, "limit", (), -1))
_damage("the memory stops later", lambda a: _add(a, "shutdown_cycles", (), 1))
_damage("the memory has a unit above all", lambda a: _put(a, "clients", 0, 4))
_damage("the memory has a unit below all", lambda a: _put(a, "clients", 0, -1))
_damage("the digest is no record's", lambda a: _put(a, "digest", (), "0" * 64), sign=False)
_damage("the digest is empty", lambda a: _made(a, "digest", lambda _: np.array("")), sign=False)
_damage(
    "the digest is in capitals", lambda a: _put(a, "digest", (), str(a["digest"]).upper()), False
)
_damage("the program is another", lambda a: _put(a, "program", (), "other"), sign=False)
_damage("the options are swapped", lambda a: _swap(a, "options", 0, 1), sign=False)
_damage("the memory has other units", lambda a: _put(a, "clients", 0, 1), sign=False)
_damage("the memory stops at once", lambda a: _put(a, "shutdown_cycles", (), 0), sign=False)

# -------------------------------------------------------------------------------- arrays

for _name, _form in FORM.items():
    _damage(f"{_name} is missing", partial(_without, name=_name), sign=False)
    _more = partial(_made, name=_name, change=lambda its: its[None])
    _damage(f"{_name} has a dimension more", _more, sign=False)
    if _form[0] == "i":
        for _type in (np.float64, np.uint64, np.bool_, np.complex128, np.str_, np.bytes_):
            _cast = partial(_as, name=_name, kind=_type)
            _damage(f"{_name} is of {_type.__name__}", _cast, sign=False)
    else:
        _cast = partial(_as, name=_name, kind=np.bytes_)
        _damage(f"{_name} is of bytes", _cast, sign=False)
    _damage(f"{_name} is pickled", partial(_as, name=_name, kind=object), sign=False)
    if _form[1] != "0" and _name not in ("clients", *RECORD):
        _damage(f"{_name} is cut", partial(_made, name=_name, change=lambda its: its[:1]))
_damage("a clock is no number", lambda a: _made(a, "clocks", lambda its: its * np.nan), sign=False)
_damage("there is another array", lambda a: a.update(more=np.zeros(1)), sign=False)
_damage("events have no amounts", lambda a: _made(a, "events", lambda its: its[:, :2]))
_damage("events have a column more", lambda a: _made(a, "events", lambda its: np.c_[its, its]))
_damage("channels have no elements", lambda a: _made(a, "channels", lambda its: its[:, :4]))
_damage("channels have a column more", lambda a: _made(a, "channels", lambda its: np.c_[its, its]))
_damage("events are cut", lambda a: _made(a, "events", lambda its: its[:-1]))
