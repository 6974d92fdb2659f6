"""What the settings and the supervisor both need to know of the machine: who dies with whom, and where the embedded
broker's socket is. Knows nothing of ours."""
