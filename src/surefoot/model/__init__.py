"""The MDP: states, rows, successors."""
