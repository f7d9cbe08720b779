"""Tests of floor plans."""
