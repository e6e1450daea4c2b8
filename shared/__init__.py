"""Facts and file formats that every part of the comparison agrees on.

Standard library and numpy only: both pinned environments, nox's own environment and the
study environment import this package.
"""
