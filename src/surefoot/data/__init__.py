"""The log: read, check, count."""
