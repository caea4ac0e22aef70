"""The store on RocksDB; two modules know rocksdict."""
