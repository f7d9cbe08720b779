"""Arrays in files that users bring."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fabric import ConfigurationError

__all__ = ["load"]


def load(file: Path, who: str, expected: str) -> Any:
    """Return what numpy reads from ``file``: an array, or an archive of arrays; never a pickle.

    Raises:
        ConfigurationError: it cannot be read; ``who`` and ``expected`` go into the message.
    """
    try:
        return np.load(file, allow_pickle=False)
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    except (ValueError, EOFError, zipfile.BadZipFile):
        reason = "is no file of numbers"
    raise ConfigurationError(f"{who}: {reason}: expected {expected}")
