"""Step-by-step maths that is computed, not guessed: right steps are right, and the one error really is one. Pure."""
