"""What this machine is, and whether it can take part."""
