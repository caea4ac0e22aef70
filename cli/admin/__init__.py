"""Commands that ask a running server: groups, topics, configs, transactions, migrations."""
