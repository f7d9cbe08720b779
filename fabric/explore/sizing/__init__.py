"""Finds depths of channels that keep a goal with the fewest bytes, a bound and a proof."""
