"""Mixtures of experts: PyTorch's numbers, and the same cycles with data and without."""

from __future__ import annotations

import pytest
import torch
import transformers.integrations.moe  # noqa: F401 - registers grouped_mm_fallback
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, simulate
from operators.kernels.schedule import Schedule, divisors
from tests.profiles import examples
from tests.torch.experts.playing import Player, mixture, routed


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a layer of any sizes, whose experts are known or chosen by a router."""
    experts = draw(st.sampled_from([1, 2, 3, 4]))
    hits = draw(st.integers(1, min(experts, 3)))
    tokens = draw(st.sampled_from([1, 2, 3, 5, 9]))
    hidden, inner = (draw(st.sampled_from([1, 2, 3, 4, 6, 8])) for _ in range(2))
    schedule = Schedule(
        ragged=draw(st.sampled_from(["static", "dynamic"])),
        tile_rows=draw(st.sampled_from([1, 2, 4, 16])),
        tile_cols=draw(st.sampled_from([1, 2, 4, 64])),
        regions=draw(st.sampled_from([None, *sorted(divisors(experts))])),
    )
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16]))
    random = torch.Generator().manual_seed(draw(st.integers(0, 99)))

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random).to(dtype)

    player = Player(schedule)
    x = player.given(numbers(tokens, hidden))
    weights = [
        player.given(numbers(experts, 2 * inner, hidden)),
        player.given(numbers(experts, hidden, inner)),
    ]
    alike = draw(st.booleans())
    logits = torch.randn(1 if alike else tokens, experts, generator=random).expand(tokens, -1)
    if draw(st.booleans()):
        choice = player.given(logits.topk(hits)[1].contiguous(), known=True)
        gates = player.given(numbers(tokens, hits))
    else:
        choice, gates = routed(player, player.given(logits.contiguous().to(dtype)), hits)
    return player.program(mixture(player, x, choice, gates, weights))


@examples(quick=50, deep=200)
@given(program=programs())
def test_numbers(program: Program) -> None:
    """What is stored is PyTorch's, and each expert has the rows that the program says."""
    report = simulate(program, mode="functional")

    assert report.verified, report.verification
    assert not report.warnings


@examples(quick=10, deep=30)
@given(program=programs())
def test_cycles(program: Program) -> None:
    """A run without data takes as long as one with them."""
    functional = simulate(program, mode="functional")
    timing = simulate(program, mode="timing")

    assert timing.cycles == functional.cycles
    assert timing.off_chip_traffic_bytes == functional.off_chip_traffic_bytes


@pytest.mark.parametrize("known", [True, False])
def test_experts_without_rows(known: bool) -> None:
    """All tokens go to one expert, whose weights alone are read."""
    torch.manual_seed(0)
    player = Player(Schedule(tile_cols=4))
    x = player.given(torch.randn(5, 8))
    weights = [player.given(torch.randn(4, 8, 8)), player.given(torch.randn(4, 8, 4))]
    logits = torch.tensor([0.0, 0.0, 3.0, 1.0]).expand(5, -1).contiguous()
    if known:
        choice = player.given(torch.full((5, 1), 2), known=True)
        gates = player.given(torch.ones(5, 1))
    else:
        choice, gates = routed(player, player.given(logits), 1)

    report = simulate(player.program(mixture(player, x, choice, gates, weights)), mode="functional")

    assert report.verified
    of_one_expert = 4 * (8 * 8 + 8 * 4)
    given = 4 * 5 * 1 if known else 4 * 5 * 4
    assert report.off_chip_traffic_bytes == of_one_expert + given + 2 * 4 * 5 * 8
