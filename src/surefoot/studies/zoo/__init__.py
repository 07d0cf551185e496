"""Worlds with known truth, logs drawn from them, and a count of the sentences that are false."""
