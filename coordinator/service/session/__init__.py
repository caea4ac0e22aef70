"""GroupService: session streams with their members, and the unary calls of members."""
