"""Model families: one file each, found by the catalogue."""
