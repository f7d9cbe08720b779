from __future__ import annotations

import pydoc
from types import ModuleType

import numpy as np
import pytest

import fabric
import fabric.extend
import fabric.serving
import operators


@pytest.mark.parametrize("facade", [fabric, fabric.extend, fabric.serving, operators])
def test_names_are_explained_by_their_own_text(facade: ModuleType) -> None:
    for name in facade.__all__:
        value = getattr(facade, name)
        if isinstance(value, int | np.dtype):
            continue
        text = pydoc.plain(pydoc.render_doc(value, "%s"))
        head = "\n".join(text.splitlines()[:4])
        for foreign in ("UnionType", "GenericAlias", "_AnnotatedAlias", "module builtins", " 0x"):
            assert foreign not in head, (name, head)
