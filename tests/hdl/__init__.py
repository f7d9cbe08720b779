"""Compares programs in pieces with the paper's hardware description."""
