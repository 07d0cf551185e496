"""What may be promised about a policy."""
