"""The check for PyTorch, which only the extra ``torch`` installs."""

from __future__ import annotations

import importlib.util

from fabric import ConfigurationError


def check_torch() -> None:
    """Check that PyTorch is installed.

    Raises:
        ConfigurationError: it is not.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigurationError(
            "operators.torch needs PyTorch, which is not installed: expected the extra torch, as "
            "in pip install 'step-fabric[torch]'"
        )
