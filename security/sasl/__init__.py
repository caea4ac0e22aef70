"""The mechanisms of SASL, and who tokens and passwords show a client to be."""
