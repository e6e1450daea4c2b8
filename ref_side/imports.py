"""Putting a verified checkout on the path, and making sure that it is what gets imported."""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from shared.errors import UserError
from shared.provenance.checkout import Checkout

_PACKAGES = ("embodied", "dreamerv3")


def import_reference(checkout: Checkout) -> None:
    """Make the checkout the working directory and import its packages from it.

    Raises ``UserError`` where the interpreter lacks a package that they need, or where one of
    their modules came from elsewhere.
    """
    sys.dont_write_bytecode = True  # not even a bytecode cache is written under the checkout
    os.chdir(checkout.root)
    sys.path.insert(0, str(checkout.root))
    kept = list(sys.path)
    try:
        for package in _PACKAGES:
            import_module(package)
    except ModuleNotFoundError as error:
        raise UserError(
            f"{sys.executable}: has no module {error.name!r}; run this command with the "
            "interpreter of the reference environment (constraints-ref.txt)"
        ) from None
    finally:
        # The stock main module puts the folder around the checkout first on the path.
        sys.path[:] = kept
    for name, location in _locations():
        if not location.is_relative_to(checkout.root):
            raise UserError(f"{name} was imported from {location}, not from {checkout.root}")


def _locations() -> Iterator[tuple[str, Path]]:
    """Every imported module of the reference with each place that it was loaded from."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES:
            yield from ((name, place.resolve()) for place in _places(module))


def _places(module: ModuleType) -> list[Path]:
    file = getattr(module, "__file__", None)
    # A folder without __init__.py is a package with a search path and no file.
    return [Path(file)] if file else [Path(each) for each in getattr(module, "__path__", [])]
