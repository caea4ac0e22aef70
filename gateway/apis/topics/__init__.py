"""Topic APIs: metadata, administration, Produce, Fetch."""
