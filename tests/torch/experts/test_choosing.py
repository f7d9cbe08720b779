from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from fabric import simulate
from operators.functions.choosing import largest_places
from tests.profiles import examples
from tests.torch.calls.calling import DTYPES, SCHEDULES, Single


@examples(quick=25, deep=200)
@given(data=st.data())
def test_topk_is_verified(data: st.DataObject) -> None:
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


@examples(quick=25, deep=200)
@given(
    cols=st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17, 33, 64, 100, 128, 129, 300]),
    k=st.sampled_from([1, 2, 3, 5, 16, 17, 18, 40]),
    spread=st.sampled_from([1, 2, 3, 6, 50]),
    largest=st.booleans(),
    nans=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_largest_places_of_equal_numbers_equal_topk(
    cols: int, k: int, spread: int, largest: bool, nans: bool, seed: int
) -> None:
    k = min(k, cols)
    random = torch.Generator().manual_seed(seed)
    x = torch.randint(0, spread, (4, cols), generator=random).float()
    if nans:
        x[x == 1] = math.nan

    found = largest_places(x.numpy(), k, largest=largest)

    assert found.tolist() == torch.topk(x, k, largest=largest)[1].tolist()
