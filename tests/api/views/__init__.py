"""Endpoints, by view."""
