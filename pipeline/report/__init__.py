"""The tables of a log as one page of HTML that needs nothing else: figures, charts, page."""
