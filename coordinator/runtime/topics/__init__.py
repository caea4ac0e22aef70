"""Topics at run time: the shared image, refreshes, deleted topics' offsets, regular expressions."""
