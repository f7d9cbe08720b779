"""Parts that studies of the paper's figures share: numbers, claims, workloads, pictures."""
