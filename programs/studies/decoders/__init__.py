"""Parts that studies of whole decoders share: the models, their matching, claims, pictures."""
