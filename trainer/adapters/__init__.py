"""What trains of a base that is frozen: one file each, found by the catalogue."""
