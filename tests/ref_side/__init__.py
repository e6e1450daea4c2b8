"""Checks that run inside the reference environment; ``tests/test_ref_side.py`` runs them."""
