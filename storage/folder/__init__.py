"""The folder of a store: its lock, its watermark, and its atomic replacement."""
