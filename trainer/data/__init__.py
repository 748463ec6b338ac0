"""Turning documents into batches."""
