"""Tests of what needs the extra torch: skipped, and reported so, where it is not installed."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra torch")
