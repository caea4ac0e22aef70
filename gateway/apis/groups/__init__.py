"""Group APIs: members and administration, of the classic and the consumer protocol."""
