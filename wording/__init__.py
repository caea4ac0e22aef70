"""What people write and read, shared by the command line and the console; pure.

Texts are parsed into fields of requests, and answers of the services become words and rows. A text
that is wrong raises ``InputError``.
"""
