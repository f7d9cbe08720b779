"""The loss from choosing a design of Mixtral's layer on one batch; see ``one_batch.py``.

Run: python -m fabric study programs/questions/one_batch_mixtral.py -o one_batch_mixtral
"""

from __future__ import annotations

import one_batch
from beyond.recorded import MIXTRAL

from fabric import Study


def study() -> Study:
    return one_batch.study(MIXTRAL, (64, 32, 16))
