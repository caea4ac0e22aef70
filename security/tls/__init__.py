"""TLS: what the settings ask for, keys and certificates in PEM, and who a certificate is about."""
