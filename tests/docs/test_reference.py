from __future__ import annotations

import re

from fabric.analysis.trace.reading.integrity import FORMS
from fabric.messages.vocabulary import FIELDS
from fabric.timing.engine import log
from tests.docs.reference import GENERATED, PAGES, pages

_TYPES = {"int64": "BIGINT", "bool": "BOOLEAN", "text": "VARCHAR"}


def test_generated_pages_are_fresh() -> None:
    texts = {
        str(file.relative_to(PAGES)): file.read_text(encoding="utf-8")
        for file in PAGES.rglob("*.md")
    }

    assert pages() == {page: text for page, text in texts.items() if GENERATED in text}


def test_files_of_a_trace_are_described() -> None:
    page = (PAGES / "reference" / "trace-files.md").read_text(encoding="utf-8")
    *files, operations = page.split("\n## ")[1:]
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w/]*) \|", re.MULTILINE)
    described = {re.split("[-.]", file)[0]: row.findall(file) for file in files}
    for form, columns in {**FORMS, "columns": {}}.items():
        found = described.get(form, [])
        assert [(name, each.type) for name, each in columns.items()] == [
            (name, _TYPES[kind]) for name, kind, _ in found
        ]
        for name, _, unit in found:
            assert name not in FIELDS or FIELDS[name].unit == unit
    listed = re.findall(r"^\| (\d+) \| (\w+) \|", operations, re.MULTILINE)
    assert [(str(each), each) for each in range(log.ALLOCATE + 1)] == [
        (number, getattr(log, name)) for number, name in listed
    ]
