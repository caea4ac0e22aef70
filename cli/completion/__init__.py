"""Completion in shells: the script of each, and what is completed beside commands and options."""
