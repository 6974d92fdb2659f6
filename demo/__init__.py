"""Demo projects with generated problems and traces, and three people. Nothing is copied from a data set; the same seed
always generates the same traces."""
