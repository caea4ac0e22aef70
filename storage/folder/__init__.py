"""The folder of a store: its lock, its watermark, and what is put in its place."""
