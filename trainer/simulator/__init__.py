"""Rehearses a run: the real round loop of many peers, in one process and in simulated time."""
