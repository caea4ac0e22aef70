"""Charts: numbers in, coordinates of SVG out."""
