"""Commands at run time: queueing, replay, responses, and reads of groups."""
