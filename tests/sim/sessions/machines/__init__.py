"""Machines of one thread: their event loop, their clocks, and how they die or stand still."""
