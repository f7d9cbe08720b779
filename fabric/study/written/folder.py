"""A study's folder: its points, its pictures and its page, each whole or not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.study.written.files import trying, write_pictures
from fabric.study.written.overview import overview_html
from fabric.study.written.page import page_html
from fabric.study.written.pictures import drawn, first_pictures
from fabric.study.written.points import write_points
from fabric.telling.whole_file import write_whole
from fabric.telling.wording import file_name

if TYPE_CHECKING:
    from fabric.study.result import StudyResult

__all__ = ["study_folder", "write_folder", "write_overview"]


def study_folder(result: StudyResult, folder: Path) -> Path:
    """Return where, in the folder of several studies, that of one is."""
    return folder / file_name(result.study.name)


def write_folder(result: StudyResult, folder: Path, *, command: str = "") -> list[str]:
    """Write ``points.parquet``, ``points.csv``, pictures and ``index.html`` into a folder.

    Args:
        result: what the study found.
        folder: made where there is none.
        command: what was typed, for the page to say how to run it again.

    Returns:
        A sentence for each thing that could not be written or drawn. What was there before stays
        where it cannot be replaced.
    """
    made = list(trying(folder, lambda: folder.mkdir(parents=True, exist_ok=True)))
    if made:
        return made
    pictures = drawn(result)
    page = page_html(result, pictures, command)
    writers = {
        "points": lambda: write_points(result, folder),
        "pictures": lambda: write_pictures(folder / "pictures", pictures.made),
        "index.html": lambda: write_whole(folder / "index.html", page),
    }
    troubles = [each for name, write in writers.items() for each in trying(folder / name, write)]
    return [*pictures.troubles, *troubles]


def write_overview(results: Sequence[StudyResult], folder: Path) -> list[str]:
    """Write ``index.html`` on several studies, each of which has its ``study_folder`` there.

    Returns:
        A sentence for each thing that could not be written.
    """
    file = folder / "index.html"
    folders = [study_folder(each, folder) for each in results]
    return list(
        trying(
            file,
            lambda: write_whole(
                file,
                overview_html(
                    results,
                    [each.name for each in folders],
                    [
                        first_pictures(result, own)
                        for result, own in zip(results, folders, strict=True)
                    ],
                ),
            ),
        )
    )
