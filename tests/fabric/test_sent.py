from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Stream, StreamType, Tile, TileType, simulate
from fabric.extend import Ports, Wiring, is_constant
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.bases import Passing, Source

F32 = np.dtype(np.float32)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _over_bytes(array: Any, *, readonly: bool) -> Any:
    view = memoryview(array).cast("B")
    return np.frombuffer(view.toreadonly() if readonly else view, F32).reshape(array.shape)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "broadcast": lambda x: np.broadcast_to(x, x.shape),
    "a broadcast row": lambda x: np.broadcast_to(x[:1], x.shape),
    "a view": lambda x: x.view(),
    "a view that cannot be written to": lambda x: _frozen(x.view()),
    "a view of a view": lambda x: _frozen(_frozen(x.view())[:]),
    "transposed": lambda x: _frozen(x.T),
    "a slice": lambda x: _frozen(x[::-1]),
    "of another type": lambda x: _frozen(x.view(np.int32)).view(F32),
    "a memory view": lambda x: _over_bytes(x, readonly=False),
    "a memory view to read": lambda x: _over_bytes(x, readonly=True),
    "strides": lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
}


def _array() -> Any:
    return np.arange(4, dtype=F32).reshape(2, 2).copy()[:]


@dataclass(frozen=True)
class Accumulates(Source):
    seen: Callable[[Any], Any]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1, 3, 1), TileType(2, 2, F32)),)

    @override
    async def run(self, ports: Ports) -> None:
        so_far = _array()
        for stop in (1, 1, 2):
            await ports.sink.send((Tile(2, 2, F32, self.seen(so_far)), stop))
            so_far += 1


@pytest.mark.parametrize("name", VIEWS)
def test_sent_view_keeps_its_numbers(name: str) -> None:
    wanted: list[Any] = []
    so_far = _array()
    for _ in range(3):
        wanted.append(VIEWS[name](so_far.copy()).copy())
        so_far += 1
    with Program("accumulates", mode="functional") as program:
        LinearOffChipStore("y")(Accumulates(VIEWS[name])())
    program.expect(y=lambda: np.concatenate(wanted))
    report = simulate(program)

    assert (None, True) == (report.error, report.verified)


@pytest.mark.parametrize("name", VIEWS)
def test_loaded_view_keeps_its_numbers(name: str) -> None:
    array = _array()

    @dataclass(frozen=True)
    class Writes(Passing):
        @override
        async def run(self, ports: Ports) -> None:
            while (element := await ports.source.receive()) is not None:
                array[...] += 1
                await ports.sink.send(element)

    wanted = VIEWS[name](array.copy()[:]).copy()
    with Program("writes", mode="functional") as program:
        tensor = Tensor((2, 2), lambda: VIEWS[name](array), dtype="float32")
        LinearOffChipStore("y")(Writes()(LinearOffChipLoad(tensor, tile=(1, 2))()))
    program.expect(y=lambda: wanted)
    report = simulate(program)

    assert (None, True) == (report.error, report.verified)


def test_array_that_nobody_can_write_is_constant() -> None:
    own = _frozen(np.ones((2, 2), F32))
    of_bytes = np.frombuffer(own.tobytes(), F32)
    constant = (own, own.T, own[:1], np.broadcast_to(own, (3, 2, 2)), of_bytes, of_bytes[:2])

    assert [True] * len(constant) == list(map(is_constant, constant))
    assert not [name for name, seen in VIEWS.items() if is_constant(seen(_array()))]
    assert is_constant(np.frombuffer(memoryview(own.tobytes()), F32))
    # Memory can be written through a view, even if the flags of the array forbid writing.
    ours: Any = np.ones((2, 2), F32)
    seen = np.asarray(memoryview(ours))
    seen.flags.writeable = ours.flags.writeable = False
    assert not is_constant(seen)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda tile: pickle.loads(pickle.dumps(tile))]
)
def test_copies_may_be_changed(copied: Any) -> None:
    from fabric.graph.values.fit import freeze

    tile = Tile(2, 2, F32, np.ones((2, 2), F32), in_memory=True, valid_rows=1, valid_cols=0)
    freeze(tile, sent=True)
    found = copied(tile)
    assert type(found) is Tile
    for name in Tile.__slots__:
        if name != "_kept":
            assert np.array_equal(getattr(tile, name), getattr(found, name))
    found.data = None
    assert tile.data is not None
