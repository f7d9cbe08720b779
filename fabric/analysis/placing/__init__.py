"""Floor plans: a site of a mesh for each unit, so that bytes cross few links."""
