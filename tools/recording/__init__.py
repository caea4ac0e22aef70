"""Records what `muster` shows in a terminal as an animated picture (`make recording`)."""
