"""Real clients over networks that take long: no heartbeat is given up, no leave is lost."""
