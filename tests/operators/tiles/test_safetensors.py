from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fabric import Program, ProgramError, Tile, dtype_named, simulate
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.operators.driving import Collect

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


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    file = saved(tmp_path / "w", w=np.zeros((2, 2), np.int8))
    assert (2, 2) == Tensor.in_file(file, "w").shape
    saved(file, w=np.zeros((2, 300), np.int8))
    assert (2, 300) == Tensor.in_file(file, "w").shape


ENTRY = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}


def entries(names: str) -> dict[str, Any]:
    return {
        name: {"dtype": "I8", "shape": [1], "data_offsets": [byte, byte + 1]}
        for byte, name in enumerate(names)
    }


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (entries(""), "holds no tensor 'w': expected one of nothing"),
        (entries("v") | {"__metadata__": {}}, "holds no tensor 'w': expected one of v"),
        (entries("gfedcb"), "holds no tensor 'w': expected one of b, c, d, e and 2 more"),
        (entries("edcb"), "holds no tensor 'w': expected one of b, c, d, e"),
        (entries("fedcb"), "holds no tensor 'w': expected one of b, c, d, e and 1 more"),
        (
            {"w": ENTRY | {"dtype": "C64", "shape": [1]}},
            f"holds tensor 'w' of C64: expected one of {', '.join(TYPES)}",
        ),
        (
            {"w": ENTRY | {"shape": [2, 2]}},
            "is not a file of safetensors (Error while deserializing header: invalid shape, data "
            "type, or offset for tensor): expected a file by save_file",
        ),
    ],
)
def test_wrong_file_is_refused_at_the_line_of_the_tensor(
    header: dict[str, Any], message: str, tmp_path: Path
) -> None:
    sizes = [0, *(entry["data_offsets"][1] for entry in header.values() if entry)]
    file = write(tmp_path / "w", header, bytes(max(sizes)))
    with pytest.raises(ProgramError) as caught:
        Tensor.in_file(file, "w")

    assert f"{file} {message}" == caught.value.message
    assert __file__ == caught.value.file
