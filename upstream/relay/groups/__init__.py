"""What the requests of groups that pass through relays show: members, and what waits."""
