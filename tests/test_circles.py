"""No module knows one that knows it, not even for types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.circles import circle_in, imports_of, imports_under

ROOT = Path(__file__).parents[1]


def test_no_circle() -> None:
    """Any module can be read, and replaced, without those above it."""
    circle = circle_in(imports_under(ROOT, ("fabric", "operators")))

    assert not circle, "modules know each other: " + " -> ".join(circle)


MADE_UP = {
    "plain": ("import made.b", "import made.c", "import made.a"),
    "names": ("from made.b import x", "from made import c", "from made.a import y"),
    "in functions": ("def f():\n    import made.b", "import made.c", "import made.a"),
    "types": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.b import x",
        "import made.c",
        "import made.a",
    ),
    "strings": (
        "import importlib\nimportlib.import_module('made.b')",
        "from importlib import import_module\nimport_module(f'made.{chosen}')",
        "__import__('made.a')",
    ),
}


@pytest.mark.parametrize("form", MADE_UP)
def test_circles_that_are_there(form: str) -> None:
    """A circle is found however its modules import each other, and is told in order."""
    texts = dict(zip(("made.a", "made.b", "made.c"), MADE_UP[form], strict=True))
    more = {"made": "", "made.d": "import made.a", "made.e": ""}

    found = circle_in(imports_of(texts | more))
    if form == "strings":
        assert found == ["made.a", "made.b", "made.a"]
    else:
        assert found == ["made.a", "made.b", "made.c", "made.a"]


def test_no_circle_in_a_tree() -> None:
    """Two ways to one module are none, nor is a package that its modules import."""
    texts = {"made": "", "made.a": "from made import b, c", "made.b": "import made.c", "made.c": ""}

    assert circle_in(imports_of(texts)) == []
    assert imports_of(texts)["made.a"] == {"made.b", "made.c"}


def test_a_name_that_cannot_be_read() -> None:
    """An import that hides what it imports is refused."""
    with pytest.raises(ValueError, match=r"line 1: .* cannot be read"):
        imports_of({"made": "__import__(chosen)"})
