"""Checks that run inside the Ajax environment; ``tests/test_ajax_side.py`` reports them."""

from ajax_side.run import set_environment

set_environment()  # before any of them imports jax or Ajax
