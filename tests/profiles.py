"""Two profiles of hypothesis, which decide the number of examples and whether they are new.

``quick``, the default, tries the same examples in every run, so only a change of the tree changes
the result. ``deep`` (``poe deep``) draws new examples: ten times as many, unless the property
states a number. Tests and cases marked ``deep`` run only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, settings

T = TypeVar("T")

_QUICK_EXAMPLES = 15
_TIMES = 10


def register() -> None:
    every = list(HealthCheck)
    settings.register_profile(
        "quick",
        max_examples=_QUICK_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=every,
    )
    settings.register_profile(
        "deep", deadline=None, database=None, print_blob=True, suppress_health_check=every
    )
    settings.load_profile("quick")


def examples(quick: int, deep: int | None = None) -> settings:
    """Return settings for a property; ``deep`` is ten times ``quick`` if it is None."""
    return settings(max_examples=of_profile(quick, deep or _TIMES * quick))


def of_profile(quick: T, deep: T) -> T:
    return deep if settings.get_current_profile_name() == "deep" else quick


def spread(values: Iterable[Any], quick: int) -> list[Any]:
    """Return the cases of a test: ``quick`` evenly spread ones, and the rest marked deep.

    A tuple among ``values`` is one case with several arguments, as in pytest.
    """
    every = list(values)
    few = {number * (len(every) - 1) // max(1, quick - 1) for number in range(quick)}
    cases = []
    for number, each in enumerate(every):
        arguments = each if type(each) is tuple else (each,)
        case = each if isinstance(each, ParameterSet) else pytest.param(*arguments)
        deep = case._replace(marks=(*case.marks, pytest.mark.deep))
        cases.append(case if number in few else deep)
    return cases


def crossed(rows: Sequence[Any], columns: Sequence[Any], quick: int) -> list[ParameterSet]:
    """Return every row with every column; only ``quick`` columns of each row are not marked deep.

    A tuple among ``rows`` is several arguments; the column comes after them.
    """
    cases = []
    for number, row in enumerate(rows):
        few = {(number * quick + further) % len(columns) for further in range(quick)}
        for at, column in enumerate(columns):
            arguments = (*row, column) if type(row) is tuple else (row, column)
            cases.append(pytest.param(*arguments, marks=() if at in few else pytest.mark.deep))
    return cases
