"""Know the machine: process lifetimes, process names, and the paths of the embedded servers.

Settings, commands and the supervisor use it; it imports nothing of Stepmark.
"""
