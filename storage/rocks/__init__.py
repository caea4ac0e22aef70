"""The store on RocksDB, its recovery, and read-only access beside a running server."""
