"""Compares compiled runs with runs as tasks."""
