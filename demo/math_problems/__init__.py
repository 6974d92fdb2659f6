"""Generated step-by-step math with computed values, so that the true rating of each step is certain. Pure."""
