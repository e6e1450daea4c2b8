"""Environments, and rounds planned and run in them. Standard library and ``shared`` only."""
