"""Models of off-chip memory against independent ones and published measurements."""
