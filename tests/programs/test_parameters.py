"""Parameters and files that programs refuse with a message of one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import ConfigurationError
from tests.programs.loading import PROGRAMS, program

TABLE = Path(__file__).with_name("refused_parameters.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", TABLE[1:])
def test_parameters_that_cannot_be_are_refused(line: str) -> None:
    call, _, message = line.partition(" => ")
    name, *given = call.split()
    with pytest.raises(ConfigurationError) as caught:
        program(name, None, **dict(each.split("=", 1) for each in given))
    assert caught.value.message == message
    assert str(caught.value.file).startswith(str(PROGRAMS))


ROUTINGS: list[tuple[Any, str]] = [
    (np.zeros((4, 3), int), "data has shape [4, 3]: expected [tokens, 2]"),
    (np.zeros((4, 2)), "data is of type float64: expected integers"),
    (np.tile([0, 1], (3, 1)), "data is [3, 2]: expected at least batch=4 rows"),
    (np.array([[0, 1]] * 3 + [[0, 8]]), "row 3 names expert 8: expected 0 to 7"),
    (np.array([[0, -1]] * 4), "row 0 names expert -1: expected 0 to 7"),
    (
        np.array([[0, 2**64 - 1]] * 4, np.uint64),
        "row 0 names expert 18446744073709551615: expected 0 to 7",
    ),
    (
        np.array([[0, 1]] * 2 + [[7, 7]] * 2),
        "row 2 names expert 7 twice: expected different experts in a row",
    ),
]
LENGTHS: list[tuple[Any, str]] = [
    ([3, -1, 0, 0], "request 1 has length -1: expected 0 to 2,147,483,647"),
    (
        np.array([3, 2**64 - 1], np.uint64),
        "request 1 has length 18446744073709551615: expected 0 to 2,147,483,647",
    ),
    ([3.5], "holds float64 [1]: expected integers [requests]"),
    ([[3]], "holds int64 [1, 1]: expected integers [requests]"),
    (np.zeros(0, int), "holds an array [0]: expected a length of at least 1"),
]


@pytest.mark.parametrize(("choice", "message"), ROUTINGS)
def test_arrays_that_are_not_a_routing_are_refused(
    choice: Any, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "routing.npz"
    np.savez(file, data=choice)
    with pytest.raises(ConfigurationError) as caught:
        program("moe", model="tiny", batch=4, routing=file)
    assert caught.value.message == f"routing file {file}: {message}"


@pytest.mark.parametrize(("lengths", "message"), LENGTHS)
def test_arrays_that_are_not_lengths_are_refused(
    lengths: Any, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "lengths.npy"
    np.save(file, np.array(lengths))
    with pytest.raises(ConfigurationError) as caught:
        program("attention", kv=file)
    assert caught.value.message == f"cache-length file {file}: {message}"


@pytest.mark.parametrize(
    ("content", "routing", "lengths"),
    [
        ("missing", "cannot be read (No such file or directory)", None),
        ("text", "is not a file of numbers", None),
        ("single", "holds a single array", None),
        ("archive", "holds choices", "holds several arrays"),
    ],
)
def test_files_of_another_format_are_refused(
    content: str, routing: str, lengths: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "given"
    match content:
        case "text":
            file.write_text("expert, expert")
        case "single":
            with file.open("wb") as opened:
                np.save(opened, np.zeros((4, 2), int))
        case "archive":
            with file.open("wb") as opened:
                np.savez(opened, choices=np.zeros((4, 2), int))
        case _:
            pass
    with pytest.raises(ConfigurationError) as caught:
        program("moe", model="tiny", batch=4, routing=file)
    expected = "expected an .npz file with an array data"
    assert caught.value.message == f"routing file {file}: {routing}: {expected}"
    if lengths is not None:
        with pytest.raises(ConfigurationError) as caught:
            program("attention", kv=file)
        expected = "expected an .npy file of lengths"
        assert caught.value.message == f"cache-length file {file}: {lengths}: {expected}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", "is empty"),
        (b"ab,c\nab\n", "line 2 is 'ab'"),
        (b"a,b,c\n", "line 1 is 'a,b,c'"),
        (b"\xff", "cannot be read (is no text)"),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_files_that_are_not_pairs_of_words_are_refused(
    tmp_path: Path, text: bytes | None, found: str
) -> None:
    file = tmp_path / "pairs.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigurationError) as caught:
        program("edit_distance", file=file)
    expected = "expected two words with a comma between them on every line"
    assert caught.value.message == f"file of pairs {file}: {found}: {expected}"
