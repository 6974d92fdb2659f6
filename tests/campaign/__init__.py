"""Whole labeling campaigns over HTTP, with simulated annotators whose quality is known."""
