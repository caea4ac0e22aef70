"""Operations on a partition's log: folding, reads of a past state, compaction and trimming."""
