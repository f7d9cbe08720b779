"""Deadlocks: the waits of a stopped run, their cause, and depths that release them."""
