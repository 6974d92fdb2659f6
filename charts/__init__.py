"""Charts as SVG: pure functions from numbers to drawings.

They know neither Django nor our models. A drawing has an accessible name and CSS classes. The style sheets of pages
style them; `charts.standalone` embeds a style sheet for files.
"""
