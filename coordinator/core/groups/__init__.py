"""Groups of any type: description, deletion, group configs; and the topic catalogue."""
