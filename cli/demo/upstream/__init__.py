"""`muster demo --upstream`: a group of a Kafka cluster moves to Muster and back while it works.

Kafka, the server and each consumer are processes of their own. What is stated at the end is
computed from the consumers' records, the producer's acknowledgements and the cluster's answers.
"""
