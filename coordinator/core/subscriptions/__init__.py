"""Regular expressions of subscriptions: their cost, their matches, and changes of them."""
