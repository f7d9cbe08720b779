from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, ProgramError, Tile, dtype_named, simulate
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from operators.tiles.tensor import find
from tests.operators.driving import Collect
from tests.profiles import examples

TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
}
NUMBERS = np.array([[1, 0, 1], [0, 0, 1]])


def write(file: Path, header: object, data: bytes = b"") -> Path:
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return file


def saved(file: Path, **arrays: Any) -> Path:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        kind = next(each for each, dtype in TYPES.items() if dtype == array.dtype)
        places = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": places}
        data += array.tobytes()
    return write(file, header, data)


@pytest.mark.parametrize("kind", TYPES)
def test_every_element_type_is_read(kind: str, tmp_path: Path) -> None:
    array = NUMBERS.astype(TYPES[kind])
    file = saved(tmp_path / "w", before=np.ones(3, np.int8), w=array)
    found, asked = Tensor.in_file(file, "w"), Tensor.in_file(str(file), "w", dtype="int16")

    assert ((2, 3), array.dtype) == (found.array.shape, found.array.dtype)
    assert array.astype(float).tolist() == found.array.astype(float).tolist()
    assert (array.dtype if array.dtype.kind in "biu" else None) == found.dtype
    assert NUMBERS.tolist() == asked.elements().of(dtype_named("int16")).tolist()


def test_tiles_are_read_only_parts_of_the_mapped_file(tmp_path: Path) -> None:
    array = np.arange(16, dtype=np.float32).reshape(4, 4)
    tensor = Tensor.in_file(saved(tmp_path / "w", w=array), "w", dtype="float32")
    seen: list[tuple[Tile, int]] = []
    with Program("mapped", mode="functional") as program:
        tiles = LinearOffChipLoad(tensor, tile=(2, 2))()
        Collect(seen)(tiles)
        LinearOffChipStore("y")(tiles)
    program.expect(y=lambda: array)
    elements = tensor.elements()

    assert simulate(program).verified is True
    mapped = elements.of(dtype_named("float32"))
    assert isinstance(mapped.base, np.memmap)
    parts: list[Any] = [tile.data for tile, _ in seen]
    assert all(np.shares_memory(each, mapped) for each in parts)


def test_only_the_header_is_read_while_wiring(tmp_path: Path) -> None:
    many = 1 << 34
    file = write(
        tmp_path / "w", {"w": {"dtype": "F32", "shape": [1, many], "data_offsets": [0, 4 * many]}}
    )
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size + 4 * many)
    with Program("large") as program:
        Collect([])(LinearOffChipLoad(Tensor.in_file(file, "w"), (1, 64), (1,), (1,))())

    assert simulate(program, mode="timing").status == "completed"


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    file = saved(tmp_path / "w", w=np.zeros((2, 2), np.int8))
    assert (2, 2) == Tensor.in_file(file, "w").shape
    saved(file, w=np.zeros((2, 300), np.int8))
    assert (2, 300) == Tensor.in_file(file, "w").shape


ENTRY = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({}, "holds no tensor 'w': expected one of nothing"),
        ({"v": ENTRY, "__metadata__": {}}, "holds no tensor 'w': expected one of v"),
        (
            dict.fromkeys("gfedcb", ENTRY),
            "holds no tensor 'w': expected one of b, c, d, e and 2 more",
        ),
        (dict.fromkeys("edcb", ENTRY), "holds no tensor 'w': expected one of b, c, d, e"),
        (
            dict.fromkeys("fedcb", ENTRY),
            "holds no tensor 'w': expected one of b, c, d, e and 1 more",
        ),
        (
            {"w": ENTRY | {"shape": [0, 1 << 61], "data_offsets": [0, 0]}},
            f"has tensor 'w' [0, {1 << 61}]: expected what numpy can hold",
        ),
        (
            {"w": ENTRY | {"shape": [1 << 62]}},
            f"describes tensor 'w' wrongly: Expected `int` <= {(1 << 62) - 1} - at `$.shape[0]`",
        ),
        (
            {"w": ENTRY | {"shape": [1] * 65}},
            "describes tensor 'w' wrongly: Expected `array` of length <= 64 - at `$.shape`",
        ),
        (
            {"w": ENTRY | {"dtype": "F4"}},
            f"holds tensor 'w' of F4: expected one of {', '.join(TYPES)}",
        ),
        (
            {"w": ENTRY | {"shape": [2, 2]}},
            "has bytes 0 to 8 of 8 for tensor 'w' [2, 2] of F32: expected 16 of the file",
        ),
        (
            {"w": ENTRY | {"data_offsets": [4, 12]}},
            "has bytes 4 to 12 of 8 for tensor 'w' [2, 1] of F32: expected 8 of the file",
        ),
        (
            {"w": ENTRY | {"shape": [-2, -1]}},
            "has bytes 0 to 8 of 8 for tensor 'w' [-2, -1] of F32: expected 8 of the file",
        ),
        (
            {"w": {"dtype": "F32", "shape": [2, 1]}},
            "describes tensor 'w' wrongly: Object missing required field `data_offsets`",
        ),
        ([1, 2], "is no file of safetensors: expected one, as safetensors.save_file writes"),
    ],
)
def test_wrong_file_is_refused_at_the_line_of_the_tensor(
    header: object, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "w", header, bytes(8))
    with pytest.raises(ProgramError) as caught:
        Tensor.in_file(file, "w")

    assert f"{file} {message}" == caught.value.message
    assert __file__ == caught.value.file


SHAPES = st.lists(st.integers(-1, 4) | st.sampled_from([1 << 31, 1 << 61, 1 << 70]), max_size=70)


@examples(quick=50)
@given(SHAPES, st.integers(-8, 24), st.integers(-8, 24), st.sampled_from(sorted(TYPES)))
def test_header_with_wrong_sizes_is_refused(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], first: int, end: int, kind: str
) -> None:
    data = bytes(range(2)) * 8
    entry = {"dtype": kind, "shape": shape, "data_offsets": [first, end]}
    file = write(tmp_path_factory.mktemp("lying") / "w", {"w": entry}, data)
    try:
        found = Tensor.in_file(file, "w")
    except ProgramError:
        return
    size = np.dtype(TYPES[kind]).itemsize
    wanted = np.frombuffer(data[first:end], TYPES[kind]).reshape(shape)
    assert 0 <= first <= end <= len(data)
    assert end - first == wanted.size * size
    assert wanted.shape == find(file, "w").data().shape == found.shape
    assert wanted.tobytes() == find(file, "w").data().tobytes()


@examples(quick=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
def test_holes_and_overlaps_are_refused_as_in_the_format_library(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[tuple[int, int]]
) -> None:
    safetensors = pytest.importorskip("safetensors", reason="comes with the extra torch")
    load = pytest.importorskip("safetensors.numpy").load
    header = {
        f"w{number}": {"dtype": "U8", "shape": [1, end - first], "data_offsets": [first, end]}
        for number, (first, end) in enumerate(ranges)
        if first <= end
    } or {"w0": {"dtype": "U8", "shape": [1, 3], "data_offsets": [0, 3]}}
    file = write(tmp_path_factory.mktemp("ranges") / "w", header, b"abc")
    try:
        known = load(file.read_bytes())
    except safetensors.SafetensorError:
        with pytest.raises(ProgramError, match="tensors that overlap, or bytes that are of none"):
            Tensor.in_file(file, next(iter(header)))
    else:
        for name, array in known.items():
            assert array.tobytes() == find(file, name).data().tobytes()
