"""What stands where in the arrays of the compiled loops."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from fabric.timing.compiled import columns as of_operators
from fabric.timing.memories import banked_columns as of_banks
from fabric.timing.network import columns as of_links
from fabric.timing.retiming import events as of_records

_OTHERS = {
    "AT_ONCE", "STAMPS", "LOOKS", "KNOWN_COLUMNS", "SUBMITTED_COLUMNS", "LEAST_ANSWER", "WORD",
    "PERIODS", "UNCOUNTED_TICKS", "WORD_BITS", "BANK_BITS", "SLOT_BITS", "CLIENT_BITS", "TICK_BITS",
    "PIECE_BITS", "LEVEL_BITS", "NUMBER_BITS", "SHIFT", "CODE_SHIFT", "STAGE_SHIFT", "NUMBER_SHIFT",
    "BANK_SHIFT", "CYCLE_SHIFT", "BARRED_SHIFT", "STATE_FACTOR", "CODE_FACTOR",
}  # fmt: skip
"""What is not a place in a table: shifts, and sizes of which there is a choice."""


def _numbered(module: ModuleType) -> Iterator[tuple[str, int]]:
    for each in ast.parse(inspect.getsource(module)).body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.value, ast.Constant):
            assert isinstance(each.target, ast.Name)
            name = each.target.id
            if name not in _OTHERS:
                yield name, getattr(module, name)


@pytest.mark.parametrize(
    ("module", "tables", "wide"),
    [
        (of_operators, 12, {}),
        (of_banks, 12, {"BUS": of_banks.FATES, "ACTIVATED": 4}),
        (of_links, 5, {}),
        (of_records, 3, {}),
    ],
)
def test_each_place_is_taken_once(module: ModuleType, tables: int, wide: dict[str, int]) -> None:
    """Columns of a table, its width the last, are numbered from 0 on without a gap."""
    follows, begun = -1, 0
    for name, number in _numbered(module):
        assert number in {0, follows}, name
        begun += number == 0
        follows = number + wide.get(name, 1)
    assert begun == tables
