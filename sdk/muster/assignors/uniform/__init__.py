"""The `uniform` assignor."""
