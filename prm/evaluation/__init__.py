"""How well a PRM finds errors, and why it might be right for the wrong reason. Pure: arrays in, estimates out."""
