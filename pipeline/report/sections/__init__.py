"""The sections of the page: figures in, HTML out."""
