"""What things cost is linear: counted, at n, 2n and 4n."""
