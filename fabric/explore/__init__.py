"""Answers that need many runs: studies, depths of channels, loads of a server."""
