"""Modules of `programs` can be imported."""

from __future__ import annotations

import sys

from tests.programs.loading import PROGRAMS

sys.path.append(str(PROGRAMS))
