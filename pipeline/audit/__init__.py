"""Whether a log keeps the invariants of groups, and which groups can migrate."""
