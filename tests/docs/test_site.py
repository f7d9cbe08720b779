from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.transcripts import ROOT

pytest.importorskip("mkdocs", reason="the site needs step-fabric[docs]")
pytest.importorskip("mkdocstrings", reason="the site needs step-fabric[docs]")

CONFIGURATION = ROOT / "docs" / "mkdocs.yml"

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon)["']?[^>]*"""
    r"""\bhref=["']?(?:https?:)?//|@import\b|url\(["']?https?://"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["-m", "mkdocs", "build", "--strict", "-q", "-f"]
    done = subprocess.run(
        [sys.executable, *options, CONFIGURATION, "-d", folder],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.deep
def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))

    assert len(pages) > 20
    assert [] == [page.name for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))]
    styles = "".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert not re.search(r"@import|url\(\s*[\"']?https?://", styles)


@pytest.mark.deep
def test_search_finds_operators_and_docstrings(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    pages = sorted((site / "reference" / "library").glob("*.html"))
    library = "".join(page.read_text(encoding="utf-8") for page in pages)

    assert "operators/higher-order.html#map" in index
    assert 'id="fabric.simulate"' in library
    # `simulate`, `open_run`, `assert_completes` and `size` have this parameter, with the same
    # meaning.
    assert library.count("the run ends as a livelock after this number of cycles without") == 4
    assert "Shapes:" not in library
