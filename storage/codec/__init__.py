"""Codec between the bytes of the ``__consumer_offsets`` log and the model's records; pure.

``record_codec`` has keys and values, ``batches`` and ``batch_encoding`` the RecordBatch v2 around
them, ``to_json`` Kafka's JSON. ``CodecError`` is the only error that any input bytes can cause.
"""
