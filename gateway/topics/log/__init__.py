"""Records of topics on disk: segments, partitions, retention and compaction."""
