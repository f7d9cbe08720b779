"""Depths of channels that keep limits of cycles."""
