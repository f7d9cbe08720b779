"""Values as JSON has them: one form for what is printed and for what a run's folder keeps."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

from msgspec import DecodeError
from msgspec import json as msgspec_json

__all__ = ["JsonObject", "counts_lines", "json_text", "plain"]

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, which its readers index without asking what is in it."""


def json_text(value: object) -> str:
    """Return ``value`` as indented JSON that every reader takes."""
    try:
        text = json.dumps(value, default=plain, allow_nan=False)
    except ValueError:
        # An infinity or a NaN: these are rare, and looking for them takes as long as writing.
        text = json.dumps(plain(value), allow_nan=False)
    # Python writes numbers and letters; its own indentation is in Python, and ten times slower.
    try:
        return msgspec_json.format(text, indent=2) + "\n"
    except DecodeError:
        # Half of a character that is no text, as in a path that is not UTF-8.
        return json.dumps(json.loads(text), indent=2) + "\n"


def counts_lines(value: object) -> tuple[bytes, ...]:
    """Return the ``json_text`` of names, integers and truth values, in a tenth of its time.

    There must be no fractions in it: not all of them are spelled as Python does. It comes in parts
    to be written one after the other, since a copy of a megabyte takes as long as its text does.
    """
    try:
        encoded = msgspec_json.encode(value)
    except (TypeError, UnicodeEncodeError):
        return (json_text(value).encode(),)
    # Python spells out the letters that not everybody has.
    if b"\x7f" in encoded or not encoded.isascii():
        return (json_text(value).encode(),)
    return msgspec_json.format(encoded, indent=2), b"\n"


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
