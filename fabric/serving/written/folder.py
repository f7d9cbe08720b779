"""The folder of a question of serving: its numbers, its pictures and its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fabric.serving.written.page import page_html
from fabric.serving.written.pictures import drawn
from fabric.study.written.files import trying, write_pictures
from fabric.telling.plain import json_text
from fabric.telling.whole_file import write_whole

if TYPE_CHECKING:
    from fabric.serving.result import ServingResult

__all__ = ["write_folder"]


def write_folder(result: ServingResult, folder: Path, *, command: str = "") -> list[str]:
    """Write ``serving.json``, pictures and ``index.html`` into a folder.

    Args:
        result: what the question came to.
        folder: made where there is none.
        command: what was typed, for the page.

    Returns:
        A sentence for each thing that could not be written.
    """
    troubles = list(trying(folder, lambda: folder.mkdir(parents=True, exist_ok=True)))
    if troubles:
        return troubles
    pictures = drawn(result)
    page = page_html(result, pictures, command)
    numbers = json_text(result.as_json())
    for name, write in (
        ("serving.json", lambda: write_whole(folder / "serving.json", numbers)),
        ("pictures", lambda: write_pictures(folder / "pictures", pictures)),
        ("index.html", lambda: write_whole(folder / "index.html", page)),
    ):
        troubles += trying(folder / name, write)
    return troubles
