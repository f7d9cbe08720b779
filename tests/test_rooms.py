"""The documents for newcomers say what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.rooms import PICTURE, picture, wings

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md")


def test_picture() -> None:
    """The stored picture is the one that the code gives; ``poe map`` draws it anew."""
    assert picture(wings()) == PICTURE.read_text(encoding="utf-8")


def test_other_imports() -> None:
    """Another line between two wings is another picture."""
    found = wings()
    assert "explore" in found["notebook"]
    found["notebook"] = {"messages"}

    assert picture(found) != picture(wings())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_names(document: str) -> None:
    """Files, folders and tasks that a document names are there."""
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`([\w./]*/[\w./]*|\w+\.(?:py|md|svg|toml))`", text)
    assert named
    tests = ROOT / "tests" / "fabric" / "trace"
    places = (ROOT, ROOT / "fabric", tests)
    missing = {
        name
        for name in named
        if not any((place / name).exists() for place in places)
        and name not in ("golden/", "__init__.py")
    }
    assert not missing
    tasks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["poe"]["tasks"]
    assert set(re.findall(r"`poe (\w+)", text)) <= tasks.keys()


def test_every_wing() -> None:
    """The architecture tells of every wing and its rooms."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = {name.partition("/")[0] for name in re.findall(r"`([\w/.]+)`", text)}
    folders = {each.parent.name for each in (ROOT / "fabric").glob("*/*/__init__.py")}
    assert not (wings().keys() | folders) - told
