"""Does the order of tiles and regions of Qwen3-30B-A3B's layer survive banks? See ``banks.py``.

Run: python -m fabric study programs/questions/banks_qwen.py -o banks_qwen
"""

from __future__ import annotations

import banks
from beyond.recorded import QWEN

from fabric import Study


def study() -> Study:
    return banks.study(QWEN.name, QWEN.recorded, (8, 16, 32), QWEN.regions)
