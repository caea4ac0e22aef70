"""The data pipeline on Spark: what the groups did, at any size, from their log.

``source`` reads stores and segments as a Spark data source; ``decoding`` turns batches into Arrow
columns and needs no Spark; ``schema`` says what the columns are.
"""
