from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs import transcripts
from tests.profiles import spread

FILE = transcripts.ROOT / "README.md"
README = FILE.read_text(encoding="utf-8")
FILES = [each for each in transcripts.blocks(README) if each.title]
BLOCKS = [each for each in transcripts.blocks(README) if each.text.startswith(("$ ", ">>> "))]


def first_line(block: transcripts.Block) -> str:
    return transcripts.named(block.text.splitlines()[0].lstrip("$> "), [block])


def _marked(block: transcripts.Block) -> object:
    marks = pytest.mark.deep if "fabric study" in block.text else ()
    return pytest.param(block, marks=marks, id=first_line(block))


@pytest.mark.parametrize("block", spread([*map(_marked, BLOCKS)], 1))
def test_readme_commands_print_what_it_shows(
    block: transcripts.Block, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    transcripts.skip_without_torch([block])
    here = transcripts.clone(tmp_path)
    for file in FILES:
        transcripts.run_block(file, here, [])
    found = transcripts.run_block(block, here, [])
    transcripts.compare_images(FILE, here, write=pytestconfig.getoption("--write-golden"))
    if pytestconfig.getoption("--write-golden"):
        FILE.write_text(FILE.read_text(encoding="utf-8").replace(block.text, found), "utf-8")
    else:
        assert block.text == found


def test_marker_of_ci_precedes_the_two_lines_of_the_set_up() -> None:
    marked = re.search(r"^<!-- set up -->\n```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert marked is not None
    lines = marked[1].splitlines()

    assert 2 == len(lines)
    assert lines[0].endswith("python -m fabric run programs/simplified_moe.py")
    assert "python -m pytest" in lines[1]


def test_readme_links_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", README)

    assert "docs/pages/index.md" in links
    assert [] == [link for link in links if not (transcripts.ROOT / link).exists()]


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_files_and_tasks_that_exist(document: str) -> None:
    text = (transcripts.ROOT / document).read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w./]*/[\w./]*|\w+\.(?:py|md|svg|toml))`", text))
    assert names
    assert not {
        name
        for name in names - {"golden/", "__init__.py"}
        if not (transcripts.ROOT / name).exists()
        and not (transcripts.ROOT / "fabric" / name).exists()
    }
    tasks = tomllib.loads((transcripts.ROOT / "pyproject.toml").read_text())["tool"]["poe"]["tasks"]
    assert set(re.findall(r"`poe (\w+)", text)) <= tasks.keys()
