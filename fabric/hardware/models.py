"""Models of off-chip memory by name: what ``[hbm] model`` may say in a hardware file."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Final, NoReturn

from fabric.arguments.described import refuse
from fabric.hardware.arbitrated import ArbitratedBanksDescription, ArbitratedDescription
from fabric.hardware.banked import BankedDescription
from fabric.hardware.description import FlatDescription, OffChipDescription
from fabric.hardware.fixed import FixedDescription
from fabric.telling.errors import ConfigurationError

__all__ = ["MODELS", "add_model"]

_OWN: Final = (
    FlatDescription,
    BankedDescription,
    FixedDescription,
    ArbitratedDescription,
    ArbitratedBanksDescription,
)

MODELS: Final[dict[str, type[OffChipDescription]]] = {each.model: each for each in _OWN}
"""Each model's description; the first one is where a file names none."""


def add_model(description: type[OffChipDescription]) -> None:
    """Let hardware files choose ``description`` by its name.

    Raises:
        ConfigurationError: it is none, has no name or that of one of the fabric's own models, or a
            field without a default.
    """
    if not issubclass(description, OffChipDescription):
        _refuse(description, "is no OffChipDescription", "a subclass of it")
    name = getattr(description, "model", None)
    if not isinstance(name, str) or not name:
        _refuse(description, f"has the model {name!r}", "what [hbm] model says")
    if MODELS.get(name) in _OWN:
        _refuse(description, f"has the model {name!r}, one of the fabric's own", "another name")
    open_fields = [each.name for each in fields(description) if each.default is MISSING]
    if open_fields:
        _refuse(description, f"has no default for {', '.join(open_fields)}", "one for each field")
    MODELS[name] = description


def _refuse(description: type[OffChipDescription], found: str, expected: str) -> NoReturn:
    refuse(
        f"register_memory: {description.__name__} {found}: expected {expected}", ConfigurationError
    )
