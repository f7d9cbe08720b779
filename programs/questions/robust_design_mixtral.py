"""Which tiles and how many regions serve every recorded batch of a layer of Mixtral-8x7B?

Run: python -m fabric study programs/questions/robust_design_mixtral.py -o robust
"""

from __future__ import annotations

import robust_design
from beyond.recorded import MIXTRAL

from fabric import Study


def study() -> Study:
    return robust_design.study(MIXTRAL)
