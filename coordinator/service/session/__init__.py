"""GroupService: session streams and their members, and the unary calls of members."""
