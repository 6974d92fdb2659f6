"""Where PRMs run. Each backend answers one question: for a problem and steps, one number per step."""
