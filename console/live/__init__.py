"""Pages that change while they are looked at: server-sent events, each group followed once."""
