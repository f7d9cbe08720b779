from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.explore.study.written.folder import study_folder, write_folder, write_overview
from fabric.explore.study.written.pictures import first_pictures
from tests.fabric.study.written.made import design, hostile, one_metric, paper, three_metrics


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@contextmanager
def largest(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = written


def test_study_folder_has_points_pictures_and_page(tmp_path: Path) -> None:
    assert not write_folder(design(), tmp_path / "a" / "b")
    pictures = [f"pictures/{name}" for name in ("front", "parallel")]
    assert files(tmp_path / "a" / "b").keys() == {
        "index.html",
        "points.parquet",
        "points.csv",
        *(f"{name}.{suffix}" for name in pictures for suffix in ("svg", "png")),
    }


@pytest.mark.deep
def test_full_disk_keeps_earlier_files_and_is_reported(tmp_path: Path) -> None:
    write_folder(one_metric(), tmp_path)
    before = files(tmp_path)
    with largest(20_000):
        troubles = write_folder(three_metrics(), tmp_path)
    after = files(tmp_path)

    unwritten = [each for each in troubles if "File too large" in each]
    assert len(unwritten) == 2
    assert any(each.startswith(str(tmp_path / "pictures")) for each in unwritten)
    assert any(each.startswith(str(tmp_path / "index.html")) for each in unwritten)
    assert after["index.html"] == before["index.html"]
    assert after["points.csv"] != before["points.csv"]
    assert not [name for name in after if name.endswith(".tmp")]


def test_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("")
    exists = [f"{tmp_path / 'study'}: File exists"]
    assert write_folder(design(), tmp_path / "study") == exists
    assert write_overview([design()], tmp_path / "study") == exists


def test_folder_without_matplotlib_has_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert write_folder(design(), tmp_path) == [
        "there are no pictures: expected matplotlib, of the extra study"
    ]
    assert files(tmp_path).keys() == {"index.html", "points.parquet", "points.csv"}


@pytest.mark.deep
def test_overview_links_every_study_page(tmp_path: Path) -> None:
    results = [one_metric(), paper(), hostile()]
    for result in results:
        write_folder(result, study_folder(result, tmp_path))
    assert not write_overview(results, tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")

    links = re.findall(r'href="([^"#]+)"', page)
    assert len(links) == len(results)
    assert all((tmp_path / link).is_file() for link in links)
    assert "Of 5 claims: 1 reproduced, 1 reproduced only on unequal terms, " in page
    assert page.count("<img ") == sum(
        len(first_pictures(each, study_folder(each, tmp_path))) for each in results
    )
    assert "<script" not in page.lower()


def test_hostile_texts_of_a_page_are_escaped(tmp_path: Path) -> None:
    write_folder(hostile(), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")

    assert "<b>" not in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert data is not None
    assert len(json.loads(data[1])["index"]) == len(hostile().outcomes)
