"""The commands that work on logs and run folders."""
