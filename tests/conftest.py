"""Settings all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fabric", deadline=None)
settings.load_profile("fabric")
