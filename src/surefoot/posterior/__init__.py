"""What the data say about the transition probabilities."""
