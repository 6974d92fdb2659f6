"""The machine: process lifetimes and names, disk space, and the paths of the embedded servers.

Settings, commands and the supervisor use it; it imports nothing of Stepmark.
"""
