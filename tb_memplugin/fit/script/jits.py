"""Jitted functions by what they take and return: which of those that a script calls is its step."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tb_memplugin.sizes import bytes_text

KERNELS = ("pallas_call", "tpu_custom_call", "triton_kernel_call", "ffi_call")  # operations of one platform
SMALL = 4 << 10  # bytes of a counter, a loss or a key: no function of so few is a step


@dataclass
class CalledJit:
    """A function with arguments of certain shapes, and how often the script has called it."""

    name: str
    argument_bytes: int
    result_bytes: int
    arguments: int
    equations: int
    returned_bytes: int  # of results that have the shape of an argument, as a new state has
    has_kernel: bool = False  # of Pallas or others that the CPU does not have
    calls: int = 0
    needed_bytes: int = 0  # of one device: arguments, results and what the script holds beside, if it is not executed

    @property
    def bytes(self) -> int:
        return self.argument_bytes + self.result_bytes

    @property
    def updates(self) -> bool:
        """Whether most of what it returns are new values of what it takes: a state, gradients, or a cache."""
        return self.returned_bytes > SMALL and 2 * self.returned_bytes > self.result_bytes

    @property
    def rank(self) -> tuple[bool, int]:
        """The order in which functions are taken for the step: by work, bytes times operations."""
        return self.updates, self.bytes * self.equations

    def __str__(self) -> str:
        of = f"{self.arguments} arrays of {bytes_text(self.argument_bytes)}"
        return f"{self.name} ({of}, results of {bytes_text(self.result_bytes)})"


def key_of(name: str, jaxpr: Any) -> tuple[Any, ...]:
    """Return what two calls of one function with arguments of the same shapes have in common."""
    return (name, *map(_shape_of, [*jaxpr.in_avals, *jaxpr.out_avals]))


def described(name: str, jaxpr: Any) -> CalledJit:
    """Return a function that was not called yet."""
    given, returned = (sum(map(_bytes_of, avals)) for avals in (jaxpr.in_avals, jaxpr.out_avals))
    left, again = Counter(map(_shape_of, jaxpr.in_avals)), 0
    for aval in jaxpr.out_avals:
        if left[_shape_of(aval)] > 0:
            left[_shape_of(aval)] -= 1
            again += _bytes_of(aval)
    operations = Counter(equation.primitive.name for equation in every_equation(jaxpr.jaxpr))
    has_kernel = any(name in KERNELS for name in operations)
    return CalledJit(name, given, returned, len(jaxpr.in_avals), operations.total(), again, has_kernel)


def _shape_of(aval: Any) -> tuple[Any, str]:
    return getattr(aval, "shape", ()), str(getattr(aval, "dtype", ""))


def _bytes_of(aval: Any) -> int:
    return math.prod(aval.shape) * int(aval.dtype.itemsize) if hasattr(aval, "dtype") else 0


def every_equation(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a function, and of those that it calls."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for each in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(each, "jaxpr", each)
                if hasattr(inner, "eqns"):
                    yield from every_equation(inner)
