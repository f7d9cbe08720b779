"""Whether PyTorch is there, which only the extra ``torch`` asks for."""

from __future__ import annotations

import importlib.util

from fabric import ConfigurationError


def check_torch() -> None:
    """Go on where PyTorch is installed.

    Raises:
        ConfigurationError: it is not.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigurationError(
            "operators.torch needs PyTorch, which is not installed: expected the extra torch, as "
            "in pip install 'step-fabric[torch]'"
        )
