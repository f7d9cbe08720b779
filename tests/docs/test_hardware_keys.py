from __future__ import annotations

import re
from dataclasses import fields

import pytest

from fabric.graph.hardware.description import Hardware, OffChipDescription
from fabric.graph.hardware.dram import PRESETS, address_bits
from fabric.graph.hardware.latency import Mesh
from fabric.graph.hardware.memory_models import MODELS, BankedDescription
from tests.docs.reference import PAGES

PAGE = (PAGES / "reference" / "hardware-keys.md").read_text(encoding="utf-8")
OWN = [kind for name, kind in MODELS.items() if kind.__module__.startswith("fabric.")]
UNITS = {
    "bytes": "bytes",
    "bursts": "bursts",
    "bundle": "requests",
    "cycle": "bytes/cycle",
    "cycles": "cycles",
    "percent": "%",
    "requests": "requests",
}
"""Units, by the last word of a key."""


def _rows(text: str) -> dict[str, list[str]]:
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells] for cells in lines}


def _section(model: str) -> dict[str, list[str]]:
    (found,) = re.findall(rf"^### `{model}`.*?(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return _rows(found)


def _said(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.model)
def test_page_has_every_key_with_its_unit_and_default(kind: type[OffChipDescription]) -> None:
    found, default = _section(kind.model), kind()
    assert {field.name for field in fields(kind)} == set(found)
    for key, (_, unit, said, *_) in found.items():
        assert UNITS.get(key.rpartition("_")[2], "") == unit
        value = getattr(default, key)
        if value is not None:
            assert said in {str(value), _said(value)}


def test_page_has_the_values_of_presets() -> None:
    rows = _section("banked")
    (head,) = re.findall(r"^\| key \| unit \| (HBM.*) \| what \|$", PAGE, re.MULTILINE)
    assert list(PRESETS) == head.split(" | ")
    for column, preset in enumerate(PRESETS.values(), 2):
        stated = vars(preset)
        assert stated == {key: int(rows[key][column]) for key in stated}


def test_page_has_every_section_of_hardware_files() -> None:
    rows = _rows(PAGE[: PAGE.index("## Keys of `[hbm]`")])
    sections = {name: type(part) for name, part in vars(Hardware()).items()} | {"network": Mesh}
    assert [f"[{name}]" for name in sections] == list(rows)
    for name in sections.keys() - {"hbm", "energy", "area"}:
        keys = re.findall(r"`(\w+)`", rows[f"[{name}]"][1])
        assert [field.name for field in fields(sections[name])] == keys


def test_page_has_the_list_of_each_named_mapping() -> None:
    hbm2 = BankedDescription()
    rows = _rows(PAGE[PAGE.index("### Mapping of addresses") : PAGE.index("## Network")])
    assert len(rows) == 3
    for name, (_, listed) in rows.items():
        mapping = tuple(re.findall(r'"([^"]+)"', listed))
        assert address_bits(name, hbm2.widths) == address_bits(mapping, hbm2.widths)
