"""Quality of labels: gold, resolution of traces, consensus, rater model and statistics. Callers import the modules."""
