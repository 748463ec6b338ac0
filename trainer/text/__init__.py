"""Turning text into token ids."""
