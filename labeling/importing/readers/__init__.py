"""Readers: a file in, records or bad lines out. Pure: no Django, no models, no clock."""
