"""The compiled loop, which runs operators from tables of their behaviour in time."""
