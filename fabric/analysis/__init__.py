"""What a plan, a log or a state tells: bounds, deadlocks, traces, floor plans, pictures."""
