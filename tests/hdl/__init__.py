"""Programs in pieces beside the paper's hardware description."""
