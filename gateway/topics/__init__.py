"""Topics whose records are kept here: small and bounded, no message store."""
