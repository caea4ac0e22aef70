"""A real Kafka 4.3.0 beside Muster: its jars, a broker, its command line tools, Java programs.

Everything runs from Maven artefacts on this machine's Java, listens on 127.0.0.1 alone and keeps
its files in a temporary folder of its own. Nothing here knows Muster: a bootstrap address is all
that the tools and the Java programs are given.
"""
