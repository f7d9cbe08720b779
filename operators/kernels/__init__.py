"""Kernels: calls on whole tensors, each a small graph of STeP operators, joined through layouts.

A model is a list of kernels (``model.py``). The layouts of operands and results, and the tensors
that stay on chip, decide how an edge between two kernels is built.

Source: StreamTensor, arXiv 2509.13694v2, sections 3 and 4.
"""

from __future__ import annotations
