"""``format("grouplog")``: a log of groups as a Spark data source, batch and streaming."""
