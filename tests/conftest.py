"""Settings all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("fabric", deadline=None)
settings.load_profile("fabric")


def pytest_configure() -> None:
    """Compile the HBM's loop: in a new clone a command would say that it had to."""
    from fabric import hbm_kernel

    hbm_kernel.was_compiled_now()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing"
    )
