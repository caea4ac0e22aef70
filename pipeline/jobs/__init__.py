"""The jobs of the pipeline, each a module with a ``main`` that ``spark-submit`` can run."""
