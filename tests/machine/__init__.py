"""What the machine promises."""
