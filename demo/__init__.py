"""A project to look around in: generated problems and traces, and three people. Nothing here is copied from a data
set; the same seed always gives the same traces."""
