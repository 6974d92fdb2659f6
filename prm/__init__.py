"""Process reward models: their scores, their evaluation, and the selection of the traces that people label next."""
