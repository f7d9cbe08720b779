"""Reference data beside the repository: tests may read it, the project does not copy it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["shared"]

_BESIDE = Path(__file__).parents[2] / "shared"


def shared(path: str) -> Path:
    """Return where ``path`` of the reference data is; skip the test, saying why, where it is not.

    The folder is the one ``STEP_FABRIC_SHARED`` names, else ``shared`` beside the repository.
    """
    folder = Path(os.environ.get("STEP_FABRIC_SHARED", _BESIDE))
    found = folder / path
    if not found.exists():
        pytest.skip(f"reference data {path} is missing: STEP_FABRIC_SHARED can name its folder")
    return found
