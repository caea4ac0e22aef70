"""The data pipeline on Spark: the history of groups, computed from their log at any size.

``source`` reads stores and segments as a Spark data source; ``decoding`` converts batches to Arrow
columns without Spark; ``schema`` defines the columns.
"""
