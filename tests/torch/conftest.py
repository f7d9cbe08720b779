"""All tests of this folder are skipped if the extra torch is not installed."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about GPUs
    # oneDNN's convolutions of bfloat16 leave parts of some outputs unwritten on some processors.
    torch.backends.mkldnn.set_flags(False)
