"""Values as JSON has them: one form for what is printed and for what a run's folder keeps."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

__all__ = ["JsonObject", "json_text", "plain"]

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, which its readers index without asking what is in it."""


def json_text(value: object) -> str:
    """Return ``value`` as indented JSON that every reader takes."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def plain(value: object) -> object:
    """Return ``value`` in JSON's own types.

    JSON knows no infinity and no NaN: such numbers become text. numpy's numbers become numbers,
    everything else text.
    """
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    item = getattr(value, "item", None)
    return plain(item()) if item and getattr(value, "shape", None) == () else str(value)
