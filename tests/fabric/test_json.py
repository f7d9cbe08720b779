from __future__ import annotations

import numpy as np
import pytest

from fabric.messages.text import counts_text, json_text

_BIG = 3 << 200


@pytest.mark.parametrize(
    "value",
    [
        {"rows": [{"name": 'a"\\/\b\f\n\r\t\x00\x1f', "count": -1, "at_most": True, "no": None}]},
        {"rows": [], "none": {}, "big": [1 << 63, 1 << 64, -1 << 64, _BIG]},
        {"café": "→ 𝄞"},
        {"name": "\x7f"},
        {"half of a letter": "\udce9"},
        {"numpy's": [np.int64(3), np.str_("x")]},
    ],
)
def test_counts_are_written_as_other_json_is(value: object) -> None:
    assert json_text(value) == counts_text(value)
