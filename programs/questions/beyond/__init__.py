"""Parts that studies beyond the paper share."""
