"""Renders the tables of a log as one self-contained HTML page: figures, charts, page."""
