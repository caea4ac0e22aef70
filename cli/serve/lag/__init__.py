"""The lag of all groups, looked at in the background, and the status that it gives them."""
