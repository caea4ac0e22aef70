"""Bytes of the ``__consumer_offsets`` log to the model's records and back; pure.

``records`` has keys and values, ``batches`` the RecordBatch v2 around them, ``to_json`` Kafka's
JSON. Whatever bytes come in, the only error that comes out is ``CodecError``.
"""
