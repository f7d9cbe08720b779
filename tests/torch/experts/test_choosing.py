"""The largest numbers of rows: PyTorch's, and those that it takes of equal ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fabric import simulate
from operators.functions.choosing import largest_places
from tests.profiles import examples
from tests.torch.calls.calling import DTYPES, SCHEDULES, Single


@examples(quick=50, deep=200)
@given(data=st.data())
def test_topk(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3))
    dtype, largest = data.draw(DTYPES), data.draw(st.booleans())
    k = data.draw(st.integers(1, shape[-1]))
    spread = data.draw(st.sampled_from([2, 4, 100]))
    seed = data.draw(st.integers(0, 99))
    x = torch.randint(0, spread, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    single = Single(data.draw(SCHEDULES), data.draw)

    report = simulate(
        single.program("aten.topk.default", (x, k, -1, largest), {}), mode="functional"
    )

    assert report.verified, report.verification


@examples(quick=50, deep=200)
@given(
    cols=st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17, 33, 64, 100, 128, 129, 300]),
    k=st.sampled_from([1, 2, 3, 5, 16, 17, 18, 40]),
    spread=st.sampled_from([1, 2, 3, 6, 50]),
    largest=st.booleans(),
    nans=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_equal_numbers(
    cols: int, k: int, spread: int, largest: bool, nans: bool, seed: int
) -> None:
    k = min(k, cols)
    random = torch.Generator().manual_seed(seed)
    x = torch.randint(0, spread, (4, cols), generator=random).float()
    if nans:
        x[x == 1] = math.nan

    found = largest_places(x.numpy(), k, largest=largest)

    assert found.tolist() == torch.topk(x, k, largest=largest)[1].tolist()


@pytest.mark.parametrize("cols", [64, 200, 1000])
@pytest.mark.parametrize("kind", ["up and down", "again and again", "ascending"])
def test_orders_that_part_badly(cols: int, kind: str) -> None:
    numbers = {
        "up and down": np.r_[np.arange(cols // 2), np.arange(cols // 2)[::-1]],
        "again and again": np.arange(cols) % 7,
        "ascending": np.sort(np.arange(cols) % 13),
    }[kind]
    x = torch.tensor(numbers[np.newaxis].astype(np.float32))
    for k in (1, 5, cols // 2, cols - 1, cols):
        found = largest_places(x.numpy(), k)

        assert found.tolist() == torch.topk(x, k)[1].tolist()
