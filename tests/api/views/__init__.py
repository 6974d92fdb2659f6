"""API views."""
