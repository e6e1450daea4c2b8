"""Tests that run inside the reference environment, by unittest; ``tests/test_ref_side.py`` runs them."""
