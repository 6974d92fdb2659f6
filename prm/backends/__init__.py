"""PRM backends. Each one takes a problem with its steps and returns one number per step."""
