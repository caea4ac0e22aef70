"""Where partitions end, for the lag of groups: as it is known here, or as clients report it."""
