"""The network against a real chip's traces and a cycle-level simulator's curves."""
