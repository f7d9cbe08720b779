"""Pictures of programs: operators, streams with their shapes, repeated parts once."""
