"""Measurements, off by default: ``python -m pytest -m benchmark tests/benchmarks``."""
