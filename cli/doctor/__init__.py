"""`muster doctor`: what of this machine, these settings and this cluster would trouble a server."""
