"""Who may have how much of what: shares of members, and exchanges that balance them."""
