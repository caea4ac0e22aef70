"""The doors of the server: their addresses, certificates, and what their clients have to show."""
