"""Pure rewriting of a broker's responses: what names brokers or groups changes, the rest stays."""
