"""Attacks on a server by clients that mean harm, or might as well. Those named SASL_SSL have a
password; the others need none.

    python -m tests.attack [NAME ...]     (make attack)

Each runs against a server of its own, beside a bystander: a valid client, in another process, that
goes on with heartbeats, commits and fetches over both doors. A row tells how long the bystander had
to wait at most, what memory and descriptors the server took and gave back, and that a client
that comes afterwards is served.
"""
