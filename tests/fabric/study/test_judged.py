from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Study, grid, simulate
from fabric.explore.study import evaluation
from fabric.explore.study.driver import conduct
from fabric.explore.study.evaluation import Job
from fabric.explore.study.result import StudyResult
from fabric.explore.study.search import Search
from fabric.explore.study.store import Store
from fabric.explore.study.workers import Answer, Workers
from fabric.explore.study.written.answer import answer, caveats, counts_table
from fabric.explore.study.written.folder import write_points
from fabric.graph.loading.program_file import executed
from fabric.messages.text import json_text
from tests.fabric.study import program_of_values
from tests.profiles import examples

PROGRAM: Final = Path(str(program_of_values.__file__))


class _Unlucky:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def _cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _shared() -> list[Any]:
    found: list[Any] = [1]
    for _ in range(60):
        found = [found, found]
    return found


JUDGED: Final[tuple[Any, ...]] = (
    *(0, -3, 2**64, -(10**308), 1.5, 1e308, -1.7e308, 5e-324, np.int64(3), np.float16(0.5)),
    *(np.array(4), np.uint64(2**64 - 1)),
)

UNJUDGED: Final[tuple[Any, ...]] = (
    *(math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), 10**309, -(10**400)),
    *(1j, np.complex64(1), True, np.bool_(False), None, "7", "\x1b[2J<b>", b"7", Decimal(7)),
    *(Decimal("NaN"), Fraction(1, 2), [1], {1: 2}, np.zeros(3), object(), np.longdouble(1)),
)

REFUSED: Final[tuple[Any, ...]] = (
    *(10**5000, [10**5000], _deep(100_000), _cyclic(), _shared(), {1: 1, "1": 2}, _Unlucky()),
)

Values = st.one_of(
    st.sampled_from([*JUDGED, *UNJUDGED, *REFUSED]),
    st.floats(),
    st.integers(-(10**400), 10**400),
    st.recursive(st.floats() | st.text() | st.none(), lambda x: st.lists(x) | st.tuples(x)),
)


class _Here(Workers):
    def __init__(self) -> None:
        super().__init__(2, None)

    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        return function(job)

    def close(self) -> None:
        self._threads.shutdown()


@pytest.fixture(autouse=True)
def _values(monkeypatch: pytest.MonkeyPatch) -> None:
    module = executed(PROGRAM)
    monkeypatch.setattr(module, "VALUES", program_of_values.VALUES)
    monkeypatch.setitem(evaluation._executed, str(PROGRAM), module)


def _study(size: int, minimize: tuple[str, ...], where: tuple[str, ...] = ()) -> Study:
    space = grid(case=range(size))
    return Study(program=PROGRAM, space=space, minimize=minimize, where=where, name="values")


def _conducted(study: Study, store: Store, search: Search | None = None) -> StudyResult:
    workers = _Here()
    try:
        return conduct(study, workers, store, lambda _: None, search=search)
    finally:
        workers.close()


def _check_all_is_told(result: StudyResult, folder: Path) -> None:
    json.loads(json_text(result.as_json()))
    assert " ".join([answer(result), *caveats(result), counts_table(result).title])
    write_points(result, folder)


@pytest.mark.deep
@given(
    st.lists(Values, min_size=1, max_size=4),
    st.sampled_from([("extra.x",), ("extra.x", "cycles"), ("cycles", "extra.x"), ("extra.z",), ()]),
    st.sampled_from([(), ("extra.x <= 7",), ("extra.x > -1e308",)]),
    st.sampled_from([None, "tpe", "nsga2", "random"]),
)
@examples(quick=5)
def test_point_with_any_value_is_judged_kept_and_printed(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[Any],
    minimize: tuple[str, ...],
    where: tuple[str, ...],
    method: Any,
) -> None:
    folder = tmp_path_factory.mktemp("values")
    program_of_values.VALUES[:] = values
    study = _study(len(values), minimize, where)
    search = None if method is None else Search(method, len(values))
    url = f"sqlite:///{folder / 'study.db'}"

    result = _conducted(study, Store(study, url), search)
    again = _conducted(study, Store(study, url), search)

    assert {each.index: repr(each) for each in again.outcomes} == {
        each.index: repr(each) for each in result.outcomes
    }
    assert again.counts["run"] == 0
    for each in result.outcomes:
        value = values[each.index]
        alone = _what(value)
        wanted = {"extra.x"} & set(study.judged_by) or set(study.judged_by) & {"extra.z"}
        if alone == "error":
            assert each.status == "error"
            assert "extra['x'] " in str(each.reason)
        elif "extra.z" in study.judged_by or (wanted and alone == "no number"):
            assert each.status == "unjudged"
            assert "extra." in str(each.reason)
        else:
            assert each.status == "completed"
    _check_all_is_told(result, folder)


def _what(value: Any) -> str:
    if any(value is each for each in REFUSED):
        return "error"
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, np.longdouble):
        value = value.item() if value.shape == () else None
    if type(value) not in (int, float):
        return "no number"
    try:
        return "number" if math.isfinite(float(value)) else "no number"
    except OverflowError:
        return "no number"


@pytest.mark.parametrize("value", REFUSED, ids=lambda each: type(each).__name__)
def test_run_with_an_unprintable_value_is_an_error(value: Any) -> None:
    program_of_values.VALUES[:] = [value]

    report = simulate(program_of_values.build())

    assert report.status == "error"
    assert report.failure is not None
    assert report.failure.message.startswith(("extra['x'] is ", "the text of extra['x'] raised"))
    assert report.failure.file in (str(PROGRAM), __file__)
    json.loads(json_text(report.as_json()))
