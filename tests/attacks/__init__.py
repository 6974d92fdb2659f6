"""Attacks that were tried on the platform. Quick ones run in the suite, slow ones are marked `fault`."""
