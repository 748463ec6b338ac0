"""Ready recipes: what `recipes/NAME.toml` says, and the collaboration that comes of it."""
