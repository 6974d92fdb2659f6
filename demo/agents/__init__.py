"""Generated traces of tool-using agents, with computed observations. Pure."""
