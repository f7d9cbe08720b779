from __future__ import annotations

import csv

import pytest

from tests.docs.sizes import COLUMNS, PROGRAMS, TABLE, Sized, row
from tests.profiles import spread


def _rows() -> list[list[str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


def _check(program: Sized) -> None:
    assert row(program) in _rows()


_SHORT = [each for each in PROGRAMS if not each.is_long]


@pytest.mark.parametrize("program", spread(_SHORT, 1), ids=str)
def test_row_of_a_short_program_is_what_size_prints(program: Sized) -> None:
    _check(program)


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.is_long], ids=str)
def test_row_of_a_long_program_is_what_size_prints(program: Sized) -> None:
    _check(program)


def test_table_of_channel_sizes_has_every_program() -> None:
    head, *rows = _rows()
    assert head == list(COLUMNS)
    assert len(rows) == len(PROGRAMS)
