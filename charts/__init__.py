"""Charts as SVG: pure functions from numbers to drawings.

They know neither Django nor our models. A drawing has an accessible name and CSS classes; `static/css/charts.css` gives
them their style on pages, and `charts.standalone` embeds a style sheet for files.
"""
