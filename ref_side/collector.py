"""Python's collector of cyclic garbage, kept from looking through what lives as long as a run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While entered, nothing is collected; what is there at the end is never looked through again.

    Tracing an agent makes millions of objects, most of which stay. Looking through them again and
    again took a tenth of a start-up with a warm compilation cache. What garbage there is among them
    stays too: the most memory that a process held, 1.07 GB, was the same to within 1 %.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()
