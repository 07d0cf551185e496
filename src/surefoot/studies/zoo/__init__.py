"""Worlds with known truth, logs of them as they come, and a count of the sentences that break."""
