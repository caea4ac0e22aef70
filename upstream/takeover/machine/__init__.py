"""The machine of a group's move: pure, an event in, the new state and the actions out."""
