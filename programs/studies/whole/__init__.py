"""Parts that studies of whole language models share: the parts of a model, and their sums."""
