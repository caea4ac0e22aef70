"""Client quotas: which are in force for whom, and how much of them is used."""
