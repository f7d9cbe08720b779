"""Reads the sections of hardware files into descriptions, and reports errors with their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from fabric.graph.arguments.described import checked, described_section, refuse_key
from fabric.graph.hardware.description import Hardware, OffChipDescription
from fabric.graph.hardware.memory_models import MODELS
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import hardware_file, read_toml
from fabric.messages.text import found_text, one_of

_EXPECTED: Final = "a hardware description in TOML"


@checked
def load_hardware(path: Path | str) -> Hardware:
    """Read a hardware description from a TOML file.

    A file of ``programs/hardware`` may be named without folder and suffix: ``"paper_priced"``.
    ``[hbm] model`` selects the model of the memory, which defines the other keys of the section.

    Raises:
        ConfigurationError: the file cannot be read, is not TOML, or has an unknown section or key,
            or a value that is out of range.
    """
    return varied_hardware(Path(path), {})


def varied_hardware(path: Path | None, keys: Mapping[str, object]) -> Hardware:
    """Return the hardware of a file, or the default, after setting ``keys`` (``SECTION.KEY``)."""
    file = None if path is None else hardware_file(path)
    sections = {} if file is None else read_toml(file, _EXPECTED)
    memory, model = sections.get("hbm"), MODELS.get(str(keys.get("hbm.model")))
    if isinstance(memory, dict) and model and memory.get("model", "flat") != model.model:
        model_keys = {field.name for field in fields(model)}  # other keys belong to another model
        sections["hbm"] = {key: value for key, value in memory.items() if key in model_keys}
    for name, value in keys.items():
        section, point, key = name.partition(".")
        if not point or not section or not key:
            raise ConfigurationError(
                f"hardware.{name} names no key: expected hardware.SECTION.KEY, as in "
                "hardware.hbm.channels"
            )
        table = sections.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value
    try:
        return _described(sections, None if file is None else str(file))
    except ConfigurationError as error:
        if keys:
            error.line = None  # the keys may override the line of the file
        raise


def _described(sections: dict[str, object], file: str | None) -> Hardware:
    hints = get_type_hints(Hardware)
    # The section of ``Mesh | None`` is Mesh.
    kinds = {name: (*get_args(hints[name]), hints[name])[0] for name in vars(Hardware())}
    read: dict[str, Any] = {}  # the arguments of Hardware
    for name, table in sections.items():
        if name not in kinds:
            expected = one_of(list(kinds), name)
            refuse_key(f"[{name}] is not a section: expected {expected}", file, name)
        if not isinstance(table, dict):
            what = f"{name} is {found_text(table)}: expected a section, [{name}] with keys"
            refuse_key(what, file, name)
        if name == "hbm":
            # The model is a key of the section, and not a field of the description.
            read[name] = described_section(_model(table, file), name, table, file, ["model"])
        else:
            read[name] = described_section(kinds[name], name, table, file)
    try:
        return Hardware(**read)
    except ConfigurationError as error:
        what = error.message.removeprefix("Hardware: ")  # "[registers]", a key, and its fault
        refuse_key(what, file, "registers", what.split()[1])


def _model(table: dict[str, object], file: str | None) -> type[OffChipDescription]:
    names = list(MODELS)
    name = table.get("model", names[0])
    if name not in names:
        expected = one_of(names, found_text(name))
        refuse_key(f"[hbm] model is {found_text(name)}: expected {expected}", file, "hbm", "model")
    return MODELS[str(name)]
