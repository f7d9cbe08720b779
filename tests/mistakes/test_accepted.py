"""Values that are accepted: numpy's integers, lists for tuples, text for paths, several runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import operators as op
from fabric import FabricError, Program, StreamType, TileType, dtype_named, simulate
from fabric.extend import Bounds
from tests.mistakes.users import Half


@pytest.mark.parametrize("one", [np.int64(1), np.uint8(1), np.array(1)])
def test_integer_of_numpy_becomes_an_int(one: Any) -> None:
    zero: Any = np.int8(0)
    flatten = op.Flatten(zero, one)
    tile = TileType(one, 16, dtype_named("int8"))

    assert (int, int, int) == tuple(map(type, (flatten.inner, flatten.outer, tile.rows)))
    assert (0, 1, 1) == (flatten.inner, flatten.outer, tile.rows)


def test_list_becomes_a_tuple() -> None:
    tile: Any = [np.int32(16), 16]

    assert (16, 16) == op.LinearOffChipLoad(np.ones((32, 32)), tile=tile).tile


def test_inferred_shape_of_numpy_becomes_a_tuple_of_ints() -> None:
    shape: Any = [np.int64(4)]

    class Longer(Half):
        def infer(self, *_: Any) -> tuple[StreamType, ...]:
            return (StreamType(shape, TileType(1, 1, dtype_named("int8"))),)

    with Program("longer"):
        stream = Longer()(op.LinearOffChipLoad(np.ones((4, 4)), tile=(1, 1))())

    assert (4,) == stream.shape
    assert type(stream.shape[0]) is int


def test_field_of_a_users_operator_keeps_its_bounds() -> None:
    @dataclass(frozen=True)
    class Every(Half):
        nth: Annotated[int, Bounds(2, 8)] = 2

    assert 8 == Every(8).nth
    with pytest.raises(FabricError, match=r"Every: nth is 9: expected an integer from 2 to 8$"):
        Every(9)


def test_annotation_without_a_runtime_type_is_not_checked() -> None:
    @dataclass(frozen=True)
    class Every(Half):
        nth: Nowhere = 2  # type: ignore[name-defined]  # noqa: F821

    assert "second" == Every("second").nth


def test_field_of_a_subclass_is_checked_beside_inherited_fields() -> None:
    @dataclass(frozen=True)
    class Every(Half):
        nth: int = 2

    @dataclass(frozen=True)
    class Named(Every):
        label: str = ""

    wrong: Any = 3
    with pytest.raises(FabricError, match=r"Named: label is 3: expected text$"):
        Named(2, wrong)
    with pytest.raises(FabricError, match=r"Named: nth is 2\.5: expected an integer$"):
        Named(2.5)  # type: ignore[arg-type]


def test_program_block_may_be_opened_again() -> None:
    made = Program("again")
    with made:
        stream = op.LinearOffChipLoad(np.ones((4, 4)), tile=(2, 2))()
    with made:
        op.Consumer()(stream)

    assert "completed" == simulate(made).status
