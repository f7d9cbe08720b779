"""Analyses of plans, logs and states: bounds, deadlocks, traces, floor plans, pictures."""
