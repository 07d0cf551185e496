"""Sets of plausible models."""
