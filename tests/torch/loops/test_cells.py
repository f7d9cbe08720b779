from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fabric import Program, ProgramError, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from operators.torch.loops.cells import behind, states
from tests.profiles import crossed, spread

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN}
FORMS: dict[str, dict[str, Any]] = {
    "one": {},
    "no biases": {"bias": False},
    "three layers": {"num_layers": 3},
    "both directions, batch first": {"bidirectional": True, "batch_first": True},
}


class Layer(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *given: Any) -> Any:
        return torch.utils._pytree.tree_leaves(self.layer(*given))


def imported(layer: nn.Module, *given: Any, schedule: Schedule | None = None) -> Program:
    return from_torch(Layer(layer).eval(), given, schedule=schedule)


def assert_right(program: Program) -> None:
    functional, timing = (simulate(program, mode=mode) for mode in ("functional", "timing"))
    assert functional.verified, functional.verification
    assert timing.cycles == functional.cycles


@pytest.mark.parametrize(("cell", "form"), crossed([*CELLS], [*FORMS], 2))
def test_recurrent_layer_is_verified(cell: str, form: str) -> None:
    torch.manual_seed(1)
    options = FORMS[form]
    layer = CELLS[cell](8, 12, **options)
    x = torch.randn((3, 5, 8) if options.get("batch_first") else (5, 3, 8))

    assert_right(imported(layer, x))


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's warning about projections
def test_projected_lstm_with_states_is_verified() -> None:
    torch.manual_seed(2)
    layer = nn.LSTM(8, 12, proj_size=4)
    first = torch.randn(1, 3, 4), torch.randn(1, 3, 12)

    assert_right(imported(layer, torch.randn(4, 3, 8), first))


def test_relu_rnn_without_batches_is_verified() -> None:
    torch.manual_seed(3)

    assert_right(imported(nn.RNN(8, 12, nonlinearity="relu"), torch.randn(6, 8)))


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(tile_rows=2, tile_cols=4, tile_inner=4, order="output"),
        Schedule(tile_rows=64, tile_cols=8, order="row"),
        Schedule(on_chip_bytes=20_000),
    ],
    ids=["sums stay", "rows stay", "little on chip"],
)
def test_lstm_is_verified_for_every_schedule(schedule: Schedule) -> None:
    torch.manual_seed(4)

    assert_right(imported(nn.LSTM(8, 16, num_layers=2), torch.randn(4, 6, 8), schedule=schedule))


@pytest.mark.parametrize("cell", spread(CELLS, 1))
def test_recurrent_layer_has_the_same_units_for_more_steps(cell: str) -> None:
    torch.manual_seed(5)
    layer = CELLS[cell](8, 16)
    few, many = (imported(layer, torch.randn(steps, 4, 8)) for steps in (16, 128))

    assert len(many.nodes) == len(few.nodes)
    short, long = (simulate(each, mode="functional") for each in (few, many))
    assert long.verified
    more = (long.off_chip_traffic_bytes or 0) - (short.off_chip_traffic_bytes or 0)
    assert more == 4 * (128 - 16) * 4 * (8 + 16)  # of x and results: weights stay on chip


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = states(x, 4, 10**6, 0)
        after = (before + before.sum(0)).contiguous()
        return behind(after, 10**6, 0)


def test_step_that_reads_a_later_one_is_refused() -> None:
    with pytest.raises(ProgramError, match="does not take them one after the other") as caught:
        from_torch(Sums().eval(), (torch.randn(3, 8),))
    assert caught.value.file == __file__
