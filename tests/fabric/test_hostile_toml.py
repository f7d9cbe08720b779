from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, load_hardware
from fabric.explore.sizing.depths_file import read_depths
from fabric.messages.files import line_in, read_toml
from tests.profiles import examples

READERS: Final[tuple[Callable[[Path], object], ...]] = (load_hardware, read_depths)

HOSTILE: Final = {
    "brackets": b"a = " + b"[" * 100_000,
    "braces": b"a = " + b"{a=" * 100_000,
    "lines of brackets": b"a = " + b"[\n" * 100_000,
    "digits": b"[depths]\na = " + b"9" * 10_001,
    "hexadecimal digits": b"[depths]\na = -0x" + b"f" * 10_001,
    "large": b"[depths]\na = 0x" + b"f" * 10_001 + b"\n[hbm]\nchannels = 0x" + b"f" * 10_001,
    "model": b"[hbm]\nmodel = 0x" + b"f" * 10_001,
    "a name of many parts": b".".join([b"a"] * 100_000) + b" = 1",
    "a table of many parts": b"[" + b".".join([b"a"] * 100_000) + b"]",
    "not text": b"\xff\xfe",
    "many bytes": b"#\n" * 3_000_000,
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_toml_is_refused_in_one_sentence(
    name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "it.toml"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ConfigurationError) as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 600 + len(str(path))


@given(
    st.sampled_from([b'[depths]\n"map.0" = 3\n', b"[hbm]\nchannels = 4\nlatency = 2\n"]),
    st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=4)), min_size=1, max_size=4),
    st.sampled_from(READERS),
)
@examples(quick=20)
def test_damaged_toml_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    content: bytes,
    damage: list[tuple[int, bytes]],
    read: Callable[[Path], object],
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "it.toml"
    for at, put in damage:
        content = content[:at] + put + content[at + len(put) :]
    path.write_bytes(content)
    with contextlib.suppress(ConfigurationError):
        read(path)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "marked.toml"
    file.write_text("\ufeff[hbm]\nchannels = 4\n", encoding="utf-8")
    assert {"hbm": {"channels": 4}} == read_toml(file, "a hardware file")
    assert 1 == line_in(str(file), "hbm")
