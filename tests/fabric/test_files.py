"""Files that are read by their lines, and written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.messages.files import output_file, write_whole


def test_failed_write_keeps_the_file(tmp_path: Path) -> None:
    path = tmp_path / "it"
    write_whole(path, "é")
    assert path.read_text(encoding="utf-8") == "é"

    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half of a letter: \udce9")
    assert path.read_text(encoding="utf-8") == "é"
    assert [each.name for each in tmp_path.iterdir()] == ["it"]
    with pytest.raises(OSError, match="No such file") as failed:
        write_whole(tmp_path / "no" / "it", "")
    assert failed.value.filename == str(tmp_path / "no" / "it")


def _fill(path: Path, error: OSError) -> None:
    with output_file(path) as file:
        file.write("a")
        raise error


def test_half_of_an_output_is_removed(tmp_path: Path) -> None:
    path, link = tmp_path / "it", tmp_path / "link"
    link.symlink_to(tmp_path / "other")
    for each in (path, link):
        with pytest.raises(OSError, match="full") as failed:
            _fill(each, OSError(28, "full"))
        assert failed.value.filename == str(each)
    assert (path.exists(), link.is_symlink()) == (False, True)
    with pytest.raises(OSError, match="full") as failed:
        _fill(path, OSError(28, "full", "another"))
    assert failed.value.filename == "another"
    with output_file(path, encoding="ascii", errors="replace") as file:
        file.write("é")
    assert path.read_bytes() == b"?"
