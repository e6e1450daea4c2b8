"""Python's collector of cyclic garbage, kept from looking through what lives as long as a run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While entered, nothing is collected; what is there at the end is never looked through again.

    Tracing an agent makes millions of objects, most of which stay. Looking through them again and
    again took a tenth of a start-up with a warm compilation cache.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()
