"""Extras: packages that parts of step-fabric need, and how to install them."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

from fabric.messages.errors import ConfigurationError


def check_extra(who: str, extra: str, *modules: str) -> None:
    """Check that ``modules``, which an extra of step-fabric installs, are installed.

    Raises:
        ConfigurationError: some are missing. The message says that ``who`` needs them, and has the
            command that installs them.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ConfigurationError(
            f"{who} needs {', '.join(missing)}, which {are} not installed: expected the extra "
            f"{extra}, as in {installing(extra)}"
        )


def installing(extra: str) -> str:
    """Return the command that installs an extra of this clone or of the installed package."""
    clone = Path(__file__).resolve().parents[2]
    if not (clone / "pyproject.toml").is_file():
        return f"pip install 'step-fabric[{extra}]'"
    folder = Path() if clone == Path.cwd() else clone
    constraints, package = shlex.quote(str(folder / "constraints.txt")), f"{folder}[{extra}]"
    return f"pip install -c {constraints} -e {shlex.quote(package)}"
