"""Traces of an agent that uses tools, in a world small enough that every observation is computed. Pure."""
