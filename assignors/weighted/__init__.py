"""The `weighted` assignor."""
