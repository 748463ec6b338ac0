"""Peers among themselves: hivemind, what it leaves open, and our averager."""
