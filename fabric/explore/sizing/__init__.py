"""The depths of channels: the least bytes that keep a goal, with a bound and a proof."""
