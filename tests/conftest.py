"""Settings all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("fabric", deadline=None)
settings.load_profile("fabric")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing"
    )
