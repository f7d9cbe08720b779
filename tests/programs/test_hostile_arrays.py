from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import ConfigurationError
from tests.profiles import examples
from tests.programs.loading import PROGRAMS
from tests.resident import peak_bytes, reset_peak

ROUTING: Final = np.array([[0, 3], [2, 1], [7, 0], [5, 6]])
LENGTHS: Final = np.array([7, 5, 1024, 0])


@pytest.fixture(autouse=True, scope="module")
def imported() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PROGRAMS)
        yield


def _routing(file: Path) -> NDArray[Any]:
    from layers.routing import read_routing

    return read_routing(file, 4, 2, 8)


def _lengths(file: Path) -> NDArray[Any]:
    from layers.cache_lengths import read_lengths

    return read_lengths(file, 4)


def _head(form: str, shape: tuple[int, ...]) -> bytes:
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"descr": form, "fortran_order": False, "shape": shape}
    )
    return written.getvalue()


HOSTILE: Final = {
    "empty": b"",
    "more than is there": _head("<i8", (1 << 40,)),
    "one less than the header states": _head("<i8", (4, 2)) + bytes(56),
    "nothing, often": _head("<i8", (1 << 40, 0)),
    "strings without characters": _head("<U0", (1 << 40,)),
    "a length below 0": _head("<i8", (-4,)) + bytes(64),
    "a length that is too large": _head("<i8", (1 << 70,)),
    "pickled": _head("|O", (1,)) + b"\x80\x04N.",
    "records": _head("<i8", (4,)).replace(b"'<i8'", b"[('a', '<i8')]"[:5]) + bytes(64),
    "brackets": b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"[" * 9000,
    "parentheses that do not close": b"\x93NUMPY\x01\x00\x02\x00((",
    "another version": b"\x93NUMPY\x09\x00" + _head("<i8", (4,))[8:] + bytes(64),
    "times": _head("<m8[s]", (4,)) + bytes(32),
    "texts": _head("<U1", (4, 2)) + bytes(32),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_array_file_is_refused(name: str, tmp_path: Path) -> None:
    lone, archive = tmp_path / "it.npy", tmp_path / "it.npz"
    lone.write_bytes(HOSTILE[name])
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.npy", HOSTILE[name])
    for read, path in ((_lengths, lone), (_routing, archive)):
        with pytest.raises(ConfigurationError, match="expected") as refused:
            read(path)
        assert str(path) in refused.value.message


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_compressed_bomb_is_refused_in_little_memory(how: int, tmp_path: Path) -> None:
    path = tmp_path / "it.npz"
    with zipfile.ZipFile(path, "w", how, compresslevel=1) as file, file.open("data.npy", "w") as it:
        it.write(_head("<i8", (1 << 27, 2)))
        for _ in range(256 if how == zipfile.ZIP_DEFLATED else 1):
            it.write(bytes(1 << 20))
    before = reset_peak()

    with pytest.raises(ConfigurationError):
        _routing(path)
    assert peak_bytes() - before < 180_000_000


def _archive(how: int) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", how) as file:
        file.writestr(zipfile.ZipInfo("data.npy"), _saved(ROUTING), how)
    return written.getvalue()


def _saved(array: NDArray[Any]) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


FILES: Final[list[tuple[bytes, Callable[[Path], NDArray[Any]], NDArray[Any] | None]]] = [
    (_archive(zipfile.ZIP_STORED), _routing, ROUTING),
    (_archive(zipfile.ZIP_DEFLATED), _routing, ROUTING),
    (_saved(LENGTHS), _lengths, None),
]


@examples(quick=30, deep=500)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 1 << 12), st.binary(max_size=6)), min_size=1, max_size=3),
    st.booleans(),
)
def test_damaged_array_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    file: tuple[bytes, Callable[[Path], NDArray[Any]], NDArray[Any] | None],
    damage: list[tuple[int, bytes]],
    cut: bool,
) -> None:
    content, read, wanted = file
    for at, put in damage:
        start = at % (len(content) or 1)
        content = content[:start] + put + (b"" if cut else content[start + len(put) :])
    path = tmp_path_factory.mktemp("damaged") / "it"
    path.write_bytes(content)
    try:
        found = read(path)
    except ConfigurationError:
        return
    assert np.int64 == found.dtype
    assert wanted is None or np.array_equal(wanted, found)
