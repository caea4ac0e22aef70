"""The `rack` assignor."""
