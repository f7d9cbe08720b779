"""Tensors whose lengths depend on data, such as ``x[mask]``."""
