"""Client-side assignors (KIP-848): declaration, selection, preparation and installation."""
