"""Client-side assignors (KIP-848): what members name, which one computes, prepare and install."""
