"""A floor plan: on which site of a mesh each unit is, so that bytes go short ways."""

from __future__ import annotations
