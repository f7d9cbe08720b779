"""What is worked out before a run, and what is a call of it."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from operators.kernels.schedule import Schedule
from operators.torch.capture import Captured, capture, target_of
from operators.torch.choices import Choices
from operators.torch.planning import Constants, planned

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([3, 0, 1, 2])

# Which calls are worked out before a run, and whether their numbers may decide how it is planned.
FOLDED: list[tuple[Callable[[Any, Any, Any], Any], list[tuple[str, bool]]]] = [
    (lambda self, x, _: x + (self.weight * 2).exp(), [("mul", False), ("exp", False)]),
    (lambda self, x, _: x + self.table * 2, [("mul", True)]),
    (lambda self, x, _: x + self.weight / self.table, [("div", False)]),
    (lambda _, x, ids: x + (ids + 1)[:, None], [("add", True), ("unsqueeze", True)]),
    (lambda self, x, ids: x + self.table[ids].cos(), [("index", True), ("cos", True)]),
    (lambda self, x, ids: x + self.weight[ids], []),
    (lambda self, x, ids: x + self.weight[ids - 1], [("sub", True)]),
    (lambda self, x, ids: x + self.weight.sin()[ids], [("sin", False)]),
    (
        lambda self, x, ids: x + self.weight * self.table[ids].tan(),
        [("index", True), ("tan", True)],
    ),
    (lambda self, x, _: x + self.weight[self.places], [("index", False)]),
    (lambda _, x, __: x + torch.arange(8), [("arange", True)]),
    (lambda _, x, __: (x + 1) * 2, []),
    (lambda self, x, _: (x + 1) * self.weight, []),
    (lambda _, x, __: x + torch.full_like(x + 1, 3.0), [("full_like", True)]),
    (lambda _, x, __: x.sort(1)[0] + 1, []),  # one of several results is no call
]
COUNT = 13 + 3 + 7  # sums with what is worked out; of weights and arguments; of data alone


class Holding(nn.Module):
    def __init__(self, functions: list[Callable[[Any, Any, Any], Any]]) -> None:
        super().__init__()
        self.functions = functions
        generator = torch.Generator().manual_seed(1)
        self.weight = nn.Parameter(torch.randn(4, 8, generator=generator))
        self.register_buffer("table", torch.randn(4, 8, generator=generator))
        self.register_buffer("places", torch.tensor([2, 2, 0, 1]))

    def forward(self, x: Any, ids: Any) -> Any:
        return [each(self, x, ids) for each in self.functions]


def captured_of(*functions: Callable[[Any, Any, Any], Any]) -> Captured:
    return capture(Holding(list(functions)).eval(), (X, IDS), {})


def test_what_is_worked_out_before() -> None:
    captured = captured_of(*(function for function, _ in FOLDED))
    constants = Constants(captured)
    folded = [node for node in captured.calls if constants.fold(node)]

    known = [(node, constants.stored(node, node.name).known) for node in folded]
    assert [(target_of(node).split(".")[1], its) for node, its in known] == [
        each for _, wanted in FOLDED for each in wanted
    ]
    others = [node for node in captured.calls if node not in folded]
    assert all(node in constants for node in folded)
    assert not any(node in constants for node in (*captured.data, *others))
    for placeholder in set(captured.tensors) - captured.data:
        held = constants.stored(placeholder, "it")
        assert held.known == (placeholder not in captured.parameters)
        assert np.array_equal(held.array(), captured.tensors[placeholder].detach().numpy())
        assert not held.array().flags.writeable
    found = planned(captured, Schedule(), Choices(captured, None))
    assert (found.calls, found.missing) == (COUNT, [])
    assert [*found.outputs] == [f"output_{at}" for at in range(len(FOLDED))]


WORKED_OUT: list[tuple[Callable[[Any, Any, Any], Any], Callable[[Any], Any], bool]] = [
    (lambda _, x, __: x + torch.zeros_like(x), lambda _: torch.zeros(4, 8), True),
    (lambda _, x, __: x + torch.ones_like(x), lambda _: torch.ones(4, 8), True),
    (lambda _, x, __: x + torch.full_like(x, 3), lambda _: torch.full((4, 8), 3.0), True),
    (lambda _, x, __: x + x.new_ones(8), lambda _: torch.ones(8), True),
    (lambda _, x, __: x + x.new_full((4, 1), 2), lambda _: torch.full((4, 1), 2.0), True),
    (lambda _, x, __: x + x.new_zeros(8), lambda _: torch.zeros(8), True),
    (
        lambda _, x, __: x + torch.linspace(0, 7, 8, device=x.device),
        lambda _: torch.linspace(0, 7, 8),
        True,
    ),
    (lambda self, x, _: x + self.weight * 2, lambda self: self.weight * 2, False),
    (lambda self, x, ids: x + self.table[ids], lambda self: self.table[IDS], False),
]


@pytest.mark.parametrize("meta", [False, True])
def test_numbers_that_are_worked_out(meta: bool) -> None:
    module = Holding([function for function, _, _ in WORKED_OUT]).eval()
    x = X.to("meta") if meta else X
    captured = capture(module.to("meta") if meta else module, (x, IDS), {})
    constants = Constants(captured)
    folded = [each for each in captured.calls if constants.fold(each)]

    for node, (_, wanted, everywhere) in zip(folded, WORKED_OUT, strict=True):
        found, expected = constants.stored(node, "mine"), wanted(Holding([]))
        assert (found.name, found.shape, found.dtype.name) == ("mine", expected.shape, "float32")
        assert found.tensor.has_data == (everywhere or not meta)
        assert found.known == (found.tensor.has_data and target_of(node) != "aten.mul.Tensor")
        if found.tensor.has_data:
            assert np.array_equal(found.array(), expected.detach().numpy())


def test_numbers_that_tiles_lack() -> None:
    captured = captured_of(
        lambda self, x, _: x * self.places.double().mean(),
        lambda _, x, ids: torch.view_as_real(torch.polar(torch.ones(4), ids.float()))[:, :1] * x,
    )
    constants = Constants(captured)
    folded = [each for each in captured.calls if constants.fold(each)]
    (mean, polar) = (each for each in folded if target_of(each)[5:9] in ("mean", "pola"))

    single, pairs = constants.single(mean), constants.pairs(polar)
    assert (single.shape, single.dtype.name, float(single.array())) == ((), "float32", 1.25)
    angles = IDS.numpy().astype(np.float32)
    assert (pairs.shape, pairs.dtype.name) == ((4, 2), "float32")
    np.testing.assert_allclose(pairs.array(), np.stack([np.cos(angles), np.sin(angles)], 1))


def several(self: Any, x: Any, _: Any) -> Any:
    values, places = torch.mode(x, 1)
    return torch.relu(values) + self.weight[:, 0], torch.digamma(places.float())


def test_what_cannot_be_imported() -> None:
    captured = captured_of(
        several,
        lambda _, x, __: x + torch.rand(8),
        lambda _, x, __: torch.exp(torch.split(x + 1, [8, 0], 1)[0]),
        lambda _, x, __: torch.exp(torch.split(x + 2, [8, 0], 1)[1]).sum(),
    )
    found = planned(captured, Schedule(), Choices(captured, None))
    assert [(each.call, each.needed.partition(":")[0]) for each in found.missing] == [
        (
            "aten.mode.default",
            "expected a call that an importer is registered for; operators.torch"
            ".imports registers yours",
        ),
        (
            "aten.digamma.default",
            "expected a call that an importer is registered for; operators."
            "torch.imports registers yours",
        ),
        ("aten.rand.default", "it draws random numbers"),
    ]
    assert [*found.outputs] == ["output_3", "output_4"]
