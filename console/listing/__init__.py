"""Long lists, page by page, with figures that cost more than a page can wait for."""
