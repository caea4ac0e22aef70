"""Logs and stores that come from elsewhere or go there: import, export, bulk, backup."""
