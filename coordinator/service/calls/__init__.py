"""Common handling of calls: caller, authorization, ordering, repeated requests, errors."""
