"""What a study leaves behind: points, tables, pictures, pages, and how far it is."""

from __future__ import annotations
