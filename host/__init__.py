"""What the settings, the commands and the supervisor need to know about the machine: which process ends with which, and
where the embedded servers and their sockets are. Imports nothing of Stepmark."""
