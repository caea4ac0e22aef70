"""The topic store on disk: segments, partition logs, retention and compaction."""
