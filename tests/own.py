from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TypeVar

from fabric.extend import BoolType

Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Anything(BoolType):
    """A type of values that the fabric does not check."""


def own(kind: Kind) -> Kind:
    """Make functions of class ``kind`` trusted, as if they were the package's own."""
    module = f"operators.{kind.__module__.rpartition('.')[2]}"
    sys.modules[module] = sys.modules[kind.__module__]
    kind.__module__ = module
    return kind
