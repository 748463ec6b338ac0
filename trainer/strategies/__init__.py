"""Training strategies: one file each, found by the catalogue."""
