"""Depths in a TOML file: written by ``size``, read by ``run --depths``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabric.messages.errors import ConfigurationError
from fabric.messages.files import output_file, read_toml
from fabric.messages.text import found_text, visible


def write_depths(path: Path, depths: Mapping[str, int], about: Sequence[str]) -> None:
    """Write the depth of each channel, below the comment lines ``about``."""
    lines = [f"{_quoted(option)} = {depth}" for option, depth in depths.items()]
    text = "\n".join([*(f"# {visible(line)}" for line in about), "", "[depths]", *lines, ""])
    with output_file(path, encoding="utf-8") as file:
        file.write(text)


def _quoted(text: str) -> str:
    # A JSON string is a TOML string, except that TOML also escapes DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_depths(path: Path) -> dict[str, int]:
    content = read_toml(path, "a file with [depths]")
    depths = content.get("depths")
    if set(content) != {"depths"} or not isinstance(depths, dict):
        raise ConfigurationError(
            f"{path}: found {', '.join(content) or 'nothing'}: expected one table, [depths]"
        )
    for option, depth in depths.items():
        if type(depth) is not int or depth < 1:
            raise ConfigurationError(
                f"{path}: {option} is {found_text(depth)}: expected a number of slots, at least 1"
            )
    return depths
