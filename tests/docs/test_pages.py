from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabric.analysis.deadlock.document import KINDS
from tests.docs import transcripts
from tests.docs.reference import GENERATED, PAGES
from tests.profiles import spread

WRITTEN = sorted(str(file.relative_to(PAGES)) for file in PAGES.rglob("*.md"))
BY_HAND = [page for page in WRITTEN if GENERATED not in (PAGES / page).read_text(encoding="utf-8")]
LONG = (
    *("size-channels", "choose-a-design", "inspect-a-run", "own-sizes", "hardware-file"),
    *("where-the-cycles-went", "floor-plan", "test-a-program"),
    *("build-hardware", "own-hardware"),
)
"""Pages with commands that take seconds."""
LINK = re.compile(r"!?\[[^\]]*\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")


def shown(page: str) -> str:
    return transcripts.named(page, transcripts.blocks((PAGES / page).read_text(encoding="utf-8")))


def _parameter(page: str) -> object:
    marks = pytest.mark.deep if Path(page).stem in LONG else ()
    return pytest.param(page, id=shown(page), marks=marks)


@pytest.mark.parametrize("page", spread([*map(_parameter, BY_HAND)], 2))
def test_page_shows_what_its_commands_print(
    page: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    here, file = transcripts.clone(tmp_path), PAGES / page
    text = file.read_text(encoding="utf-8")
    transcripts.skip_without_torch(transcripts.blocks(text))
    entered: list[str] = []
    for block in transcripts.blocks(text):
        found = transcripts.run_block(block, here, entered)
        if pytestconfig.getoption("--write-golden"):
            text = text.replace(block.text, found)
            file.write_text(text, encoding="utf-8")
        else:
            assert block.text == found
    transcripts.compare_images(file, here, write=pytestconfig.getoption("--write-golden"))


@pytest.mark.parametrize("page", WRITTEN)
def test_links_of_pages_lead_to_files(page: str) -> None:
    file = PAGES / page
    links = [target for target, _ in LINK.findall(file.read_text(encoding="utf-8")) if target]

    assert [] == [link for link in links if not (file.parent / link).exists()]


def test_table_of_contents_has_every_page() -> None:
    contents = (PAGES.parent / "mkdocs.yml").read_text(encoding="utf-8")

    assert [] == [page for page in WRITTEN if f" {page}\n" not in contents]


def test_another_page_links_to_every_page() -> None:
    reached = {
        (PAGES / page).parent.joinpath(target).resolve()
        for page in WRITTEN
        for target, _ in LINK.findall((PAGES / page).read_text(encoding="utf-8"))
        if target and Path(target).name != Path(page).name
    }

    assert [] == [page for page in WRITTEN if PAGES / page not in reached and page != "index.md"]


def test_every_program_is_listed() -> None:
    page = (PAGES / "reference" / "programs.md").read_text(encoding="utf-8")
    programs = [
        file
        for file in (transcripts.ROOT / "programs").iterdir()
        if file.suffix in (".py", ".ipynb")
    ]

    assert [] == [file.name for file in programs if f"`{file.name}`" not in page]


def test_images_take_less_than_the_limit() -> None:
    images = list((PAGES / "images").iterdir())
    large = [file.name for file in images if file.stat().st_size > 200_000]
    assert images
    assert not large


def test_every_kind_of_deadlock_is_explained() -> None:
    page = (PAGES / "how-to" / "read-a-deadlock.md").read_text(encoding="utf-8")

    assert [] == [code for code in KINDS if f"| `{code}` " not in page]
