"""Does the order of tiles and regions of Mixtral-8x7B's layer survive banks? See ``banks.py``.

Run: python -m fabric study programs/questions/banks_mixtral.py -o banks_mixtral
"""

from __future__ import annotations

import banks
from beyond.recorded import MIXTRAL

from fabric import Study


def study() -> Study:
    return banks.study(MIXTRAL.name, MIXTRAL.recorded, (16,), MIXTRAL.regions)
