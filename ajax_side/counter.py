"""Reports numbers from inside a compiled program that jax can still store in its cache.

jax stores no program with a host callback: what identifies the callback is an address in this
process. A call of XLA's foreign function interface is by name, and looked up where the program is
loaded. The structures are the leading fields of those in ``xla/ffi/api/c_api.h`` of jaxlib, whose
``struct_size`` fields keep them readable by later versions.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import jax
from jax import ffi

#: Version of the interface that the structures below belong to.
_MAJOR, _MINOR = 0, 1
#: Type of the extension with which XLA asks a handler, when it is registered, for its version.
_METADATA = 1

_HEAD: list[tuple[str, Any]] = [
    ("struct_size", ctypes.c_size_t),
    ("extension_start", ctypes.c_void_p),
]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", _Version),
        ("traits", ctypes.c_uint32),
    ]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [*_HEAD, ("dtype", ctypes.c_int), ("data", ctypes.POINTER(ctypes.c_int32))]


class _Arguments(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Arguments),
    ]


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))

#: Registered handlers: XLA keeps their addresses for as long as the process lives.
_kept: list[Any] = []


def counter(name: str, report: Callable[[int], None]) -> Callable[[Any], None]:
    """A function to be called in traced code with an int32 scalar, which ``report`` is given.

    ``report`` is called from a thread of XLA's; what it raises is printed and the program goes on.
    ``name`` is part of the program and must be registered where a stored program is loaded.
    """

    def handle(pointer: Any) -> None:
        frame = pointer.contents
        if frame.extension_start:
            extension = _Extension.from_address(frame.extension_start)
            if extension.type == _METADATA:
                version = extension.metadata.contents.version
                version.major, version.minor = _MAJOR, _MINOR
                return
        report(frame.arguments.buffers[0].contents.data[0])

    handler = _Handler(handle)
    _kept.append(handler)
    address = ctypes.cast(handler, ctypes.c_void_p).value
    ffi.register_ffi_target(name, ffi.pycapsule(address), platform="cpu")
    call = ffi.ffi_call(name, (), has_side_effect=True, vmap_method="sequential")

    def count(number: Any) -> None:
        call(jax.numpy.asarray(number, jax.numpy.int32))

    return count
