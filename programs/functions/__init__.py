"""Hardware functions that STeP does not have. Programs define them as users define their own."""
