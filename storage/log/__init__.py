"""What is read out of a partition's log: the fold, its past, its compaction and trimming."""
