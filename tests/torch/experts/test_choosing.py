from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from fabric import simulate
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
