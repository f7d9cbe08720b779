"""What is recorded of single operators, and work that takes longer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Stream, StreamType
from fabric.extend import BoolType, Ports, Wiring
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Record, RecordedChannel, RecordedLinks
from fabric.timing.retiming.retimer import Blocked, Retimer, waits_of
from operators import Consumer, Metadata
from tests.bases import Source
from tests.deadlock.parts import Leak
from tests.fabric.retiming.networks import Steps
from tests.fabric.retiming.real import UNBOUNDED, recorded, run, timed
from tests.fabric.scripted import Charge, Stage
from tests.programs.loading import program as shipped


def _record(program: Program, depths: dict[str, int] | None = None) -> Record:
    record, _ = recorded(program, depths or {})
    assert record is not None
    return record


@dataclass(frozen=True)
class _Late(Source):
    """Sends three elements for cycles that it makes of its unit's clock."""

    reads: bool

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((3,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(3):
            await ports.sink.send_at((True, 0), (ports.now if self.reads else ports.unit.now) + 9)


def _late(*, reads: bool) -> Program:
    with Program("late", channel_depth=3) as program:
        Charge(name="end")(_Late(reads, name="late")())
    return program


class TestRequests:
    """What counts from a reading, from the start, or from nothing that is known."""

    def test_from_a_reading(self) -> None:
        """With one slot, each of 3 elements is asked for 9 cycles after the last credit."""
        record = _record(_late(reads=True))
        assert () == record.arbitrated
        assert timed(Retimer(record), [1]) == run(_late(reads=True), {"end.0": 1})

    def test_from_nothing_known(self) -> None:
        """A cycle made of the unit's clock by hand does not move with it: the record says so."""
        record = _record(_late(reads=False))
        assert ("late sends for cycles that count from no reading",) == record.arbitrated
        assert (True, False) == (record.orders_are_fixed, record.determinate)
        assert timed(Retimer(record), [1]) != run(_late(reads=False), {"end.0": 1})

    def test_from_the_start(self) -> None:
        """Metadata asks for cycles 0, 1, 2 ... whatever its clock."""
        with Program("numbers") as program:
            Consumer(name="end")(Metadata(np.arange(5))())
        record = _record(program)
        assert () == record.arbitrated
        assert e.AT in record.events[:, 0] & e.KIND
        assert timed(Retimer(record), [1]) == run(program, {"end.0": 1})

    def test_from_several_readings(self) -> None:
        """Each request counts from its own, not from the latest."""
        with Program("readings") as program:
            steps = ("n", "c3", "a0+1", "c2", "l0+40")
            Charge(name="end")(Steps(steps, 3, name="late")()[0])
        record = _record(program)
        for depth in (1, 2, 3, UNBOUNDED):
            assert timed(Retimer(record), [depth]) == run(program, {"end.0": depth})


def test_slots_never_put_into() -> None:
    """They stay taken: a leak of two slots blocks with two and goes on with three."""
    with Program("leak") as program:
        leaking = Leak(name="leak")(Steps(("s0",), 2, name="source")()[0])
        Charge(name="end")(leaking)
    record = _record(program, {"end.0": 4})
    assert [0, 2] == [channel.unused for channel in record.channels]
    retimer = Retimer(record)
    for depth in (1, 2, 3, 4):
        ran = run(program, {"end.0": depth})
        assert (ran.cycles is None) == (depth <= 2)
        assert ran.like(timed(retimer, [2, depth]))


def test_left_over() -> None:
    """A reader that has ended holds nobody up: elements leave when it ended, or when they come."""
    with Program("left") as program:
        (stream,) = Steps(("s0", "c1", "a0+30"), 4, name="source")()
        Steps(("r0", "c40"), 1, (), name="end")(stream)
    record = _record(program)
    for depth in (1, 2, 3, UNBOUNDED):
        assert timed(Retimer(record), [depth]) == run(program, {"end.0": depth})


def test_every_kind_of_event() -> None:
    """Records of these programs have all the kinds there are, and each is timed again."""
    with Program("slots") as slots:
        steps = ("p0", "t0", "v0", "c4", "w0", "s0", "n", "c1", "l0+3")
        Charge()(Steps(steps, None)(Steps(("s0", "c2"), 4)()[0])[0])
    with Program("numbers") as numbers:
        Consumer()(Metadata(np.arange(5))())
    top2 = shipped("top2_moe"), UNBOUNDED
    found: set[int] = set()
    for program, depth in ((slots, 2), (numbers, 2), (shipped("edit_distance"), 2), top2):
        depths = {edge.key: depth for edge in elaborate(program).edges}
        record, ran = recorded(program, depths)
        assert record is not None
        assert ran == timed(Retimer(record), record.depths.tolist())
        found |= set((record.events[:, 0] & e.KIND).tolist())
    assert set(range(e.IDLE + 1)) == found


class TestWork:
    """Units that work longer, or not as long."""

    @staticmethod
    def _chain(work: tuple[int, ...]) -> Program:
        with Program("chain") as program:
            made = Stage(6, work_cycles=(5,), name="first")()
            made = Stage(6, work_cycles=work, works_first=True, name="second")(*made)
            Stage(6, outputs=0, work_cycles=(4,), name="third")(*made)
        return program

    @pytest.mark.parametrize(
        ("factor", "work"), [(3.0, (12, 18)), (0.5, (2, 3)), (0.0, (0, 0)), (0.4, (2, 2))]
    )
    def test_as_a_run(self, factor: float, work: tuple[int, ...]) -> None:
        """It is as a run in which that unit works so long, each time in full cycles."""
        record = _record(self._chain((4, 6)))
        record = record.with_work([record.units.index("second")], factor)
        for depth in (1, 2, 5):
            options = {"second.0": depth, "third.0": depth}
            assert timed(Retimer(record), [depth] * 2) == run(self._chain(work), options)

    def test_until(self) -> None:
        """How long a unit is busy after an element has come is work, too."""
        record, _ = recorded(shipped("top2_moe"), {})
        assert record is not None
        kinds, amounts = record.events[:, 0] & e.KIND, record.events[:, 1]
        (unit, *_) = record.unit_of[(kinds == e.UNTIL) & (amounts > 0)].tolist()
        waits = (record.unit_of == unit) & (kinds >= e.WAIT)
        longer = record.with_work([unit], 3.0).events[:, 1]
        assert np.where(kinds == e.UNTIL, 3 * amounts, amounts)[waits].tolist() == (
            longer[waits].tolist()
        )


class TestByHand:
    """What follows from a record of three units and two channels that nobody ran."""

    @staticmethod
    def _made(**more: Any) -> Record:
        channels = tuple(
            RecordedChannel(f"{reader}.0", f"{sender}.0 -> {reader}.0", *ends, *sizes)
            for sender, reader, ends, sizes in (
                ("a", "b", (0, 1), (3, 1, 1, 2, 4, 1)),
                ("a", "c", (0, 2), (7, 1, 1, 3, 4, 0)),
            )
        )
        events = [
            (e.SEND, 0, 4), (e.SEND, 0, 0), (e.RESERVE, 1, 3), (e.PUT, 1, 2), (e.SEND, 1, 1),
            (e.RESERVE, 1, 1), (e.WAIT, 0, 7), (e.PUT, 1, 0), (e.RESERVE, 0, 0), (e.FINISH, 0, 1),
            (e.SEE, 0, 1), (e.TAKE, 0, 0), (e.WORK, 0, 5), (e.WAIT, 0, 9), (e.UNTIL, 0, 7),
            (e.SEE, 0, 0), (e.HEAR, 0, 0), (e.FINISH, 0, 3),
            (e.IDLE, 1, 2), (e.TAKE, 1, 0), (e.TAKE, 1, 2), (e.WAIT, 0, 5), (e.FINISH, 0, 0),
        ]  # fmt: skip
        pairs = np.array([(channel << e.SHIFT | kind, amount) for kind, channel, amount in events])
        return Record(
            "by hand", ("a", "b", "c"), channels, np.array([0, 10, 18, 23]), pairs, 99, **more
        )

    def test_numbers(self) -> None:
        """Elements and slots are counted by channel; a slot of the first is never put into."""
        record = self._made()
        assert [[3, 7], [2, 3], [0, 3, 6]] == [
            each.tolist() for each in (record.depths, record.elements, record.base)
        ]
        assert {"b.0": 0, "c.0": 1} == record.number
        assert [0] * 10 + [1] * 8 + [2] * 5 == record.unit_of.tolist()
        assert [0, 1, 0, 0, 1, 2, 0, 2, 2, 0] == record.element_of[:10].tolist()
        assert [0, 0, 0, 0, 0, 1, 1, 0] == record.element_of[10:18].tolist()
        assert [0, 0, 1, 0, 0] == record.element_of[18:].tolist()
        assert [0, 1, -1, 3, 4, 7] == record.places(e.SEND, e.PUT).tolist()
        assert [0, 1, 8, 2, 4, 5] == record.places(e.SEND, e.RESERVE).tolist()
        assert [11, 16, -1, 19, 20, -1] == record.places(e.TAKE, e.HEAR).tolist()

    def test_longer(self) -> None:
        """Work of some units, their waits for memories, or both; what remains is as it was."""
        record = self._made()
        before = record.events.copy()

        def changed(other: Record) -> dict[int, int]:
            assert before[:, 0].tolist() == other.events[:, 0].tolist()
            assert before.tolist() == record.events.tolist()
            places = np.flatnonzero(before[:, 1] != other.events[:, 1])
            return {place: other.events[place, 1].item() for place in places.tolist()}

        # 1, 0, 5, 0 and 3 cycles, one and a half times as long: 1.5, 9 and 13.5 from the start.
        work = {10: 2, 12: 7, 17: 5, 14: 10}
        assert work == changed(record.with_work([1], 1.5))
        assert {6: 4, 21: 2} == changed(record.with_waits([0, 2], 0.5))
        assert work | {13: 14} == changed(record.with_pace([1], 1.5))
        # What it idles is no work.
        assert {20: 8} == changed(record.with_work([2], 4.0))

    def test_wider(self) -> None:
        """Links that carry more or less, in full bytes and at least one; or any number."""
        links = RecordedLinks((3, 8, 1), (((0, 2), (0,)), ((1,), (1,))))
        record = self._made(links=links, shares_links=True)
        for times, capacities in ((0.5, (2, 4, 1)), (2, (6, 16, 2)), (0.1, (1, 1, 1))):
            wider = record.with_links(times)
            assert wider.links == links._replace(capacities=capacities)
            assert wider.shares_links
        free = record.with_links(math.inf)
        assert (None, False, ()) == (free.links, free.shares_links, free.arbitrated)
        for shares in (True, False):
            unknown = self._made(shares_links=shares)
            for times in (2, math.inf):
                assert (None, shares) == (
                    unknown.with_links(times).links,
                    unknown.with_links(times).shares_links,
                )

    def test_what_cannot_be_told(self) -> None:
        """A sentence for each reason, in this order; only some let units do something else."""
        reasons: dict[str, tuple[Any, list[str]]] = {
            "choosers": (
                ("merge_1", "merge_2", "other"),
                ["merge_1..2 take whichever input comes first",
                 "other takes whichever input comes first"],
            ),
            "shares_off_chip": (True, ["the HBM serves bursts as they come"]),
            "shares_on_chip": (True, ["the on-chip memory serves units as they ask"]),
            "shares_links": (True, ["links of the network carry what is sent at a time"]),
            "unread": (
                ("a", "c"),
                [f"{unit} sends for cycles that count from no reading" for unit in "ac"],
            ),
        }  # fmt: skip
        every = self._made(**{name: value for name, (value, _) in reasons.items()})
        assert tuple(each for _, told in reasons.values() for each in told) == every.arbitrated
        for name, (value, told) in reasons.items():
            record = self._made(**{name: value})
            assert (tuple(told), False) == (record.arbitrated, record.determinate)
            assert record.orders_are_fixed == (name not in ("choosers", "shares_on_chip"))
        assert (True, True, ()) == (
            self._made().determinate, self._made().orders_are_fixed, self._made().arbitrated
        )  # fmt: skip


def _of(
    units: dict[str, list[tuple[int, int, int]]], ends: list[tuple[int, int]], **more: Any
) -> Record:
    """Return a record of ``units``, each of whose events is a kind, a channel and an amount.

    An element is visible 3 cycles after it was sent, and a credit usable 2 after it was taken.
    """
    events = [event for its in units.values() for event in its]
    sent = [[(kind, channel) for kind, channel, _ in events].count((e.SEND, at))
            for at in range(len(ends))]  # fmt: skip
    return Record(
        "by hand",
        tuple(units),
        tuple(
            RecordedChannel(f"c{at}", f"c{at}", *its, 1, 3, 2, sent[at])
            for at, its in enumerate(ends)
        ),
        np.cumsum([0, *map(len, units.values())]),
        np.array([(channel << e.SHIFT | kind, amount) for kind, channel, amount in events]),
        99,
        **more,
    )


PAIR = {
    "a": [(e.SEND, 0, 4), (e.SEND, 0, 1), (e.SEND, 0, 1), (e.FINISH, 0, 1)],
    "b": [(e.TAKE, 0, 0), (e.TAKE, 0, 5), (e.TAKE, 0, 0), (e.END, 0, 0), (e.FINISH, 0, 2)],
}


@pytest.mark.parametrize(
    ("depth", "interval", "clocks", "empty", "full"),
    [
        (1, 0, [4, 9, 14, 15, 7, 12, 17, 17, 19], 7 + 0 + 5, 4 + 4),
        (2, 0, [4, 5, 9, 10, 7, 12, 12, 12, 14], 7, 3),
        (3, 0, [4, 5, 6, 7, 7, 12, 12, 12, 14], 7, 0),
        # Wires take one element in four cycles, and the end comes over them, too.
        (3, 4, [4, 8, 12, 13, 7, 12, 16, 16, 18], 7 + 0 + 4, 3 + 3),
        (1, 4, [4, 9, 14, 15, 7, 12, 17, 18, 20], 7 + 0 + 5 + 1, 4 + 4),
    ],
)
def test_clocks_by_hand(
    depth: int, interval: int, clocks: list[int], empty: int, full: int
) -> None:
    """Each event's cycle, what was waited for, who is to blame, and what comes of limits."""
    more: dict[str, Any] = {"interval_cycles": interval}
    retimer = Retimer(_of(PAIR, [(0, 1)], **more))
    retimed = retimer.time([depth])
    assert (clocks[-1], (), None) == tuple(retimed)
    assert clocks == retimer.clocks.tolist()
    waits = waits_of(retimer)
    assert ([clocks[3], clocks[-1]], [empty], [full]) == tuple(each.tolist() for each in waits)
    assert retimer.blamed(retimed) == ({0} if depth == 1 else set())
    assert retimed == retimer.time([depth], clocks[-1])
    assert (None, (), 8) == retimer.time([depth], clocks[-1] - 1)
    assert 3 == retimer.timed
    # The memory stops so long after the unit that it serves.
    for after, cycles in ((clocks[-1] - clocks[3], clocks[-1]), (30, clocks[3] + 30)):
        served = Retimer(_of(PAIR, [(0, 1)], clients=(0,), shutdown_cycles=after, **more))
        assert (cycles, (), None) == served.time([depth], cycles)
    assert (None, (), None) == served.time([depth], clocks[3] + 29)
    assert served.blamed(served.time([depth])) == ({0} if depth < 3 else set())


def test_idle_by_hand() -> None:
    """All of the time in which a unit idles is waited, what it idles on beyond an element, too."""
    units = {
        "a": [(e.SEND, 0, 4), (e.FINISH, 0, 0)],
        "b": [(e.IDLE, 0, 2), (e.HEAR, 0, 0), (e.FINISH, 0, 1)],
    }
    retimer = Retimer(_of(units, [(0, 1)]))
    assert (10, (), None) == retimer.time([1])
    assert [4, 4, 9, 9, 10] == retimer.clocks.tolist()
    assert ([4, 10], [9], [0]) == tuple(each.tolist() for each in waits_of(retimer))


@pytest.mark.parametrize(
    ("sizes", "visible"),
    [
        ([8, 4, 6], [4 + 4 + 3, 8 + 2 + 3, 10 + 3 + 3]),
        # The last one has no size of its own: it has that of the one before.
        ([8, 4], [4 + 4 + 3, 8 + 2 + 3, 10 + 2 + 3]),
        ([2, 10, 4, 100], [4 + 1 + 3, 5 + 5 + 3, 10 + 2 + 3]),
        ([], [4 + 3, 5 + 3, 6 + 3]),
    ],
)
def test_links_by_hand(sizes: list[int], visible: list[int]) -> None:
    """Sent in cycles 4, 5 and 6 over a link of two bytes a cycle, one behind the other.

    A second channel, of four elements, has a link of its own that is wide.
    """
    units = {
        "c": [*[(e.SEND, 1, 1)] * 4, (e.FINISH, 0, 0)],
        "a": PAIR["a"],
        "b": [*[(e.TAKE, 0, 0)] * 3, *[(e.TAKE, 1, 0)] * 4, (e.FINISH, 0, 0)],
    }
    links = RecordedLinks(
        (1000, 2),
        (((1,), (0,)), ((0,), (1,))),
        {0: np.array(sizes, np.int64), 1: np.full(4, 1000)},
    )
    record = _of(units, [(1, 2), (0, 2)], links=links, shares_links=True)
    retimer = Retimer(record)
    for _ in range(2):  # nothing is under way when it is timed again
        assert (visible[-1], (), None) == retimer.time([9, 9])
        assert visible == retimer.visible[:3].tolist()
        assert [1 + 1 + 3, 2 + 1 + 3, 3 + 1 + 3, 4 + 1 + 3] == retimer.visible[3:].tolist()


def test_blocked_by_hand() -> None:
    """Two units wait for each other, and a third for one of them: it is in no loop."""
    record = _of(
        {
            "c": [(e.TAKE, 2, 0), (e.FINISH, 0, 0)],
            "a": [(e.SEND, 0, 1), (e.SEND, 0, 1), (e.SEND, 1, 1), (e.FINISH, 0, 0)],
            "b": [
                (e.TAKE, 1, 0), (e.TAKE, 0, 0), (e.TAKE, 0, 0), (e.SEND, 2, 0), (e.FINISH, 0, 0),
            ],
        },
        [(1, 2), (1, 2), (2, 0)],
    )  # fmt: skip
    retimer = Retimer(record)
    retimed = retimer.time([1, 1, 1])
    third, first, second = Blocked(0, 2, False), Blocked(1, 0, True), Blocked(2, 1, False)
    assert (None, (third, first, second), None) == tuple(retimed)
    assert (second, first) == retimer.loop_of(retimed.blocked)
    assert (first, second) == retimer.loop_of([first, second])
    assert () == retimer.loop_of([third, first])
    assert {0} == retimer.blamed(retimed)
    # Sent in cycles 1, 2 and 3, all three are taken in 6, and so is what comes of them in 9.
    assert (9, (), None) == retimer.time([2, 1, 1])
    assert [9, 9, 1, 2, 3, 3, 6, 6, 6, 6, 6] == retimer.clocks.tolist()
