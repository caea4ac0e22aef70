"""Who looks at the console: browsers, forms that they send, hosts that they ask for, sessions."""
