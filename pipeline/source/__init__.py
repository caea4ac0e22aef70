"""``format("grouplog")``: a log of groups as a Spark data source, for batches and streams."""
