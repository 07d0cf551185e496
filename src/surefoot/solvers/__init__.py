"""Robust Bellman equations, solved with sound numerical bounds."""
