"""Mistakes of users' operators in a run: the body of ``run`` and the message.

The error is in the line that ends in ``# here``.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

from fabric import Stream, StreamType, Tile, TileType
from fabric.extend import BoolType, Ports, ValueType, Wiring
from tests.bases import Passing
from tests.fabric.users.raised import RAISED

F32 = np.dtype(np.float32)
TILE = TileType(1, 2, F32)
Body = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True)
class Row:
    body: Body
    message: str
    value: ValueType = field(default_factory=BoolType)
    shape: tuple[int, ...] = (3,)
    functional: bool = True


@dataclass(frozen=True)
class Misuse(Passing):
    row: Row

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType(self.row.shape, self.row.value),)

    @override
    async def run(self, ports: Ports) -> None:
        await self.row.body(ports)


def blamed_line(body: Body) -> int | None:
    lines, first = inspect.getsourcelines(body)
    return next(
        (first + n for n, line in enumerate(lines) if line.rstrip().endswith("# here")), None
    )


def _sends(*elements: Any) -> Body:
    async def body(ports: Any) -> None:
        for element in elements:
            await ports.sink.send(element)  # here

    return body


def _sent(value: Any, found: str, kind: ValueType, *, functional: bool = True) -> Row:
    return Row(
        _sends((value, 0)), f"element 0 of {{stream}} is {found} ({{at}}), at cycle 0",
        kind, functional=functional,
    )  # fmt: skip


def _tile(rows: Any = 1, cols: Any = 2, dtype: Any = F32, data: Any = 0, **more: Any) -> Tile:
    if isinstance(data, int):
        data = np.zeros((1, 2), np.float32)
    return Tile(rows, cols, dtype, data, **more)


OF_1X2 = "expected an array of 1x2 float32"
VALUES = {
    "data of another shape": _sent(
        _tile(data=np.zeros((2, 1), np.float32)),
        f"Tile(1x2 float32) whose data are an array of 2x1 float32: {OF_1X2}",
        TILE,
    ),
    "data of another type": _sent(
        _tile(data=np.zeros((1, 2))),
        f"Tile(1x2 float32) whose data are an array of 1x2 float64: {OF_1X2}",
        TILE,
    ),
    "a list": _sent(
        _tile(data=[[0.0, 0.0]]),
        f"Tile(1x2 float32) whose data are a value of type list: {OF_1X2}",
        TILE,
    ),
    "data in timing mode": _sent(
        _tile(), "Tile(1x2 float32) with data: expected None in timing mode", TILE,
        functional=False,
    ),
}  # fmt: skip


RANK_0 = "expected 0 to 0, the rank of [3] of bool"


async def _ends_inside(ports: Any) -> None:
    await ports.sink.send((True, 2))
    await ports.sink.send((True, 1))


async def _puts_unreserved(ports: Any) -> None:
    ports.sink.put((True, 0))  # here


async def _sends_at_no_cycle(ports: Any) -> None:
    await ports.sink.send_at((True, 0), 1.5)  # here


async def _sends_wrong_bare(ports: Any) -> None:
    await ports.sink.send_bare(1, 0)  # here


async def _closes(ports: Any) -> None:
    await ports.sink.send((True, 0))
    ports.sink.close()  # here


async def _hears(ports: Any) -> None:
    await ports.source.peek()
    ports.source.hear()  # here


async def _takes_unseen(ports: Any) -> None:
    await ports.source.peek()
    ports.source.take()
    ports.source.take()  # here


async def _forgets_send(ports: Any) -> None:
    while (element := await ports.source.receive()) is not None:
        ports.sink.send(element)  # here


async def _keeps_send(ports: Any) -> None:
    kept = [ports.sink.send((True, 0))]  # here
    await ports.sink.send((True, 0))
    assert kept


async def _loops_on_receive(ports: Any) -> None:
    while ports.source.receive():  # here
        ports.unit.charge(1)


async def _forgets_reach(ports: Any) -> None:
    ports.clock.reach(ports.unit, 5)  # here


async def _two_receives(ports: Any) -> None:
    first = ports.source.receive()  # here
    second = ports.source.receive()
    await second
    await first


async def _awaits_twice(ports: Any) -> None:
    sending = ports.sink.send((True, 0))
    await sending
    await sending  # here


async def _in_a_thread(ports: Any) -> None:
    def work() -> None:
        with contextlib.suppress(SystemExit):
            ports.source.receive().send(None)  # here

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def _turns_back(ports: Any) -> None:
    ports.unit.charge(7)
    ports.unit.now -= 5  # here


async def _cooks_the_books(ports: Any) -> None:
    ports.unit.busy_cycles = 0  # here


async def _charges_much(ports: Any) -> None:
    ports.unit.charge(2**70)  # here


async def _charges_a_bool(ports: Any) -> None:
    ports.unit.charge(True)  # here


async def _reaches_nothing(ports: Any) -> None:
    await ports.clock.reach(ports.unit, "5")  # here


async def _bursts_uninvited(ports: Any) -> None:
    await ports.burst(1, 64)  # here


async def _changes_what_it_sent(ports: Any) -> None:
    data = np.zeros((1, 2), np.float32)
    for _ in range(3):
        data += 1  # here
        await ports.sink.send((Tile(1, 2, F32, data), 0))


async def _changes_a_sent_tile(ports: Any) -> None:
    tile = Tile(1, 2, F32, np.zeros((1, 2), np.float32))
    await ports.sink.send((tile, 0))
    tile.valid_rows = 0  # here


_DONE = "expected `await` at once ({at}), at cycle"
CALLS = {
    "ends inside": Row(
        _ends_inside,
        "{stream} ends after element 1, which has a stop of level 1: expected level 2, which "
        "closes the dimensions of [1, 2, 3] of bool, at cycle 0",
        shape=(1, 2, 3),
    ),
    "put without reserve": Row(
        _puts_unreserved,
        "element 0 of {stream} is put without a slot: expected `await reserve()` before ({at}), "
        "at cycle 0",
    ),
    "at no cycle": Row(
        _sends_at_no_cycle,
        "element 0 of {stream} is sent for cycle 1.5: expected an integer ({at}), at cycle 0",
    ),
    "send_bare": Row(
        _sends_wrong_bare, f"element 0 of {{stream}} has a stop of level 1: {RANK_0} ({{at}}), "
        "at cycle 0",
    ),
    "close": Row(
        _closes,
        "{stream} is closed by its operator: expected the end of run() to do so ({at}), "
        "at cycle 0, element 0",
    ),
    "take without peek": Row(
        _takes_unseen,
        "take() from ticks_1.0 -> wrong.0 without a look: expected `await peek()` before ({at}), "
        "at cycle 1, element 1",
    ),
    "hear": Row(
        _hears,
        "hear() from ticks_1.0 -> wrong.0: expected `await peek()` and take() ({at}), "
        "at cycle 1, element 0",
    ),
    "send forgotten": Row(_forgets_send, f"send() is not awaited: {_DONE} 1, element 1"),
    "send kept": Row(_keeps_send, f"send() is not awaited: {_DONE} 0, element 0"),
    "receive in a loop": Row(_loops_on_receive, f"receive() is not awaited: {_DONE} 1, element 0"),
    "reach forgotten": Row(_forgets_reach, f"reach() is not awaited: {_DONE} 0, element 0"),
    "two at a time": Row(_two_receives, f"receive() is not awaited: {_DONE} 0, element 0"),
    "awaited twice": Row(
        _awaits_twice,
        "RuntimeError: cannot reuse already awaited coroutine ({at}), at cycle 0, element 0",
    ),
    "a thread": Row(
        _in_a_thread,
        "another thread uses its channels: expected the operator to await them in turn "
        "({at}), at cycle 0, element 0",
    ),
    "a clock turned back": Row(
        _turns_back,
        "now of its unit is set to 2: expected charge(cycles) for work; the fabric counts waits "
        "({at}), at cycle 7, element 0",
    ),
    "a counter": Row(
        _cooks_the_books,
        "busy_cycles of its unit is set to 0: expected charge(cycles) for work; the fabric counts "
        "waits ({at}), at cycle 0, element 0",
    ),
    "many cycles": Row(
        _charges_much,
        "1180591620717411303424 cycles are charged: expected a clock that stays below 2**60 "
        "({at}), at cycle 0, element 0",
    ),
    "a bool of cycles": Row(
        _charges_a_bool,
        "True cycles are charged: expected an integer ({at}), at cycle 0, element 0",
    ),
    "no cycle to reach": Row(
        _reaches_nothing,
        "'5' is a cycle to reach: expected an integer ({at}), at cycle 0, element 0",
    ),
    "no client of the HBM": Row(
        _bursts_uninvited,
        "burst() is called: expected an operator with off_chip = 'read' or 'write' ({at}), "
        "at cycle 0, element 0",
    ),
    "data changed": Row(
        _changes_what_it_sent,
        "ValueError: output array is read-only ({at}), at cycle 0, element 0",
        TILE,
    ),
    "tile changed": Row(
        _changes_a_sent_tile,
        "AttributeError: valid_rows of Tile(1x2 float32) is set, but other operators may read it: "
        "expected a new Tile ({at}), at cycle 0, element 0",
        TILE,
    ),
}  # fmt: skip

RAISES = {
    name: Row(body, f"{what} ({{at}}), at cycle 0, element 0")
    for name, (body, what) in RAISED.items()
}

ROWS = {
    f"{table}: {name}": row
    for table, rows in (
        ("value", VALUES),
        ("call", CALLS),
        ("raise", RAISES),
    )
    for name, row in rows.items()
}
