"""Classic requests on consumer groups, and the conversion of groups both ways; pure."""
