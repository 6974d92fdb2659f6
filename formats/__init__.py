"""Readers: a file in, records or bad lines out. Pure: no Django, no models, no clock."""


# What can be told of texts alone: whether two say the same, or nearly, and whether one holds what is private. Pure.
