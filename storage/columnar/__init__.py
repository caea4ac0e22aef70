"""Many record batches at once as numpy arrays: bytes in, arrays out, no state.

``codec.batches`` reads one batch into objects and says what a batch is; here whole blocks of a
segment become columns, for whatever goes through a long log: importing, verifying, pipelines.
"""
