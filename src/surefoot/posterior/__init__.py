"""Posteriors: what the data say about the transition probabilities."""
