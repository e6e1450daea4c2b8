"""The side that runs the real reference DreamerV3 (danijar/dreamerv3) from its checkout."""
