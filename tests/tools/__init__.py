"""Tools of others, pointed at Muster: what they show is compared with what is so."""
