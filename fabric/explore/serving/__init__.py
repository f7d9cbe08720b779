"""A stream of requests meets a scheduler: what a server of a language model gives its users."""
