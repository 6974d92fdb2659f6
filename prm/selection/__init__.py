"""Which traces people label next. Pure: numbers in, draws with known probabilities out.

A PRM's score becomes a hazard per step (`hazards`), hazards become probabilities of the first error and a score of
each trace (`acquisitions`), and `draws` turns the score into a probability of being drawn.
"""
