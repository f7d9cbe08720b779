"""A run as a record of what each unit did, and when it would have done it under other depths."""

from __future__ import annotations
