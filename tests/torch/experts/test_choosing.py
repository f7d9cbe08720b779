from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.steps import Chain
from tests.operators.functions.test_integers import SEEDS, TYPES, computed, matrix_of, tile_of
from tests.profiles import examples


@examples(quick=30, deep=500)
@given(
    # PyTorch has no topk of uint64.
    dtype=st.sampled_from([each for each in TYPES.values() if each.name != "uint64"]),
    random=SEEDS,
    cols=st.integers(1, 6),
    largest=st.booleans(),
)
def test_largest_numbers_follow_the_order_of_integers(
    dtype: Any, random: Random, cols: int, largest: bool
) -> None:
    (row,) = matrix_of(random, dtype, 1, cols)
    k = random.randint(1, cols)
    places = TopPlaces((0,), np.dtype(np.int64), k=k, largest=largest)
    function = Chain(1, (places, TakenAlong((0, 1), dtype)))

    found = computed(function, [[tile_of([row], dtype)]], dtype)
    assert [sorted(row, reverse=largest)[:k]] == found
