"""Tests of what needs the extra torch: skipped where it is not installed, and the report says so."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra torch")
