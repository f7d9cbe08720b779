"""What programs share is imported as it is when one of them is executed."""

from __future__ import annotations

import sys

from tests.programs.loading import PROGRAMS

sys.path.append(str(PROGRAMS))
