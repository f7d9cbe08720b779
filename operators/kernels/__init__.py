"""Kernels: calls on whole tensors, each a small graph of STeP operators, joined through layouts.

A model is a list of kernels (``model.py``). Each says in which layouts it reads its operands and in
which one it gives its result; how an edge between two of them is realised follows from their
layouts and from what shall stay on chip (``kernel.py``).

Source: StreamTensor, arXiv 2509.13694v2, sections 3 and 4.
"""

from __future__ import annotations
