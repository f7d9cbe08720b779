"""Importers that users register: which one is called, and results that are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import pytest

from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Stored, View
from operators.torch import registry
from operators.torch.call import Call, Spec, UnsupportedError
from operators.torch.importing import Importing
from operators.torch.planning import imported
from operators.torch.registry import importer_of, imports, supported

FLOAT = np.dtype(np.float32)
OWN = "own.call.default"


def no_choice(*_: object) -> NoReturn:
    raise AssertionError("no call in this file has a choice of experts")


def importing_with(**options: Any) -> Importing:
    return Importing(Schedule(**options), no_choice)


def a_call(target: str, *args: Any, results: Sequence[Spec] = ()) -> Call:
    return Call(target, "it", args, {}, tuple(results), len(results) > 1, "", None, None)


def stored(*shape: int) -> View:
    return View.of(Stored.of("x", shape, FLOAT, lambda: np.zeros(shape, FLOAT)))


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_IMPORTERS", "_MAKERS"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))


class Form:
    pass


@pytest.mark.usefixtures("_registered")
def test_importer_of_an_opaque_form_and_latest_registration_win() -> None:
    def first(_: Importing, call: Call) -> View:
        return call.tensor()

    def second(_: Importing, call: Call) -> View:
        return call.tensor()

    before = supported()
    assert importer_of(OWN) is None
    assert imports(OWN, "own.a.default")(first) is first
    assert importer_of(OWN) is importer_of("own.a.default") is first
    assert imports(OWN, of=Form)(second) is second
    assert importer_of(OWN) is first
    assert importer_of(OWN, [Form]) is second
    assert list(supported()) == sorted({*before, OWN, "own.a.default"})
    imports("own.a.default")(second)
    assert importer_of("own.a.default") is second


RESULT = Spec((2, 3, 4), FLOAT)
HALF = Spec((2, 3, 4), np.dtype(np.float16))


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize(
    ("results", "importer", "said"),
    [
        ([RESULT], lambda x: x, ""),
        ([RESULT] * 2, lambda x: (x, None), ""),
        ([RESULT] * 2, lambda x: x, "the number of its importer's results is 1: expected 2"),
        (
            [RESULT],
            lambda x: x.reshaped((6, 4)),
            r"its importer gives a tensor \[6, 4\] of float32: expected \[2, 3, 4\] of float32",
        ),
        (
            [RESULT, HALF],
            lambda x: (x, x),
            r"its importer gives a tensor \[2, 3, 4\] of float32: expected \[2, 3, 4\] of float16",
        ),
    ],
)
def test_importer_results_of_other_number_shape_or_type_are_refused(
    results: list[Spec], importer: Callable[[View], Any], said: str
) -> None:
    imports(OWN)(lambda _, call: importer(call.tensor()))
    x = stored(2, 3, 4)
    call = a_call(OWN, x, results=results)
    if not said:
        assert imported(importing_with(), call) == importer(x)
        return
    with pytest.raises(UnsupportedError, match=f"^{said}$"):
        imported(importing_with(), call)


@pytest.mark.parametrize("target", ["sort.default", "argsort.default", "softmax.int"])
def test_dimension_that_a_tensor_lacks_is_refused(target: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^dim is 2: expected -2 to 1$"):
        imported(importing_with(), a_call(f"aten.{target}", stored(3, 4), 2))
