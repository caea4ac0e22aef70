"""What can be read as the log of groups: segments and stores, their identity, and places in
them.
"""
