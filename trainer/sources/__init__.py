"""Where text comes from: one file for each kind of place."""
