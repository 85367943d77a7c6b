"""Budgets in tests: a test that takes `memory_budget` says `memory_budget("70GiB").fits(compiled)`, or of a path.

pytest finds this by its entry point. Nothing of ours is imported before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tb_memplugin.recording import Recording


@dataclass(frozen=True)
class Budget:
    """What may be needed at most, in bytes."""

    limit: int

    def fits(self, what: Any, recording: str = "") -> None:
        """Fails the test, with the explanation, where the peak is above the limit.

        `what` is a path (a logdir, a run, or a file that `tb-memplugin summary` reads) or a compiled function of JAX,
        which need not have run. `recording` is a regular expression: only recordings whose id it is found in count.
        InputError where there is nothing to check, or where something could not be read.
        """
        import re

        from tb_memplugin.errors import InputError
        from tb_memplugin.views.budget import budget, verdict

        __tracebackhide__ = True  # the test that failed is the caller's
        answer = budget(_recordings(what), self.limit, re.compile(recording))
        if not answer["checked"]:
            raise InputError("There is nothing to check", recording or str(what), "see tb-memplugin summary")
        if answer["broken"]:
            pytest.fail("\n".join(verdict(answer)), pytrace=False)


@pytest.fixture
def memory_budget() -> Callable[[str | int], Budget]:
    """`memory_budget("70GiB")`: a budget, from a size as people write one."""
    from tb_memplugin.sizes import parse_size

    return lambda size: Budget(parse_size(str(size)))


def _recordings(what: Any) -> list[Recording]:
    import os

    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.errors import InputError

    if not isinstance(what, str | os.PathLike):
        return _of_compiled(what)
    listing = listing_of_path(os.fspath(what))
    for problem in listing.problems:
        raise InputError("Not all of it can be read", problem.file, problem.text)
    return listing.recordings


def _of_compiled(compiled: Any) -> list[Recording]:
    """The program as JAX has it after compiling; its buffer assignment has no traces, so lifetimes are rebuilt."""
    from tb_memplugin.errors import InputError
    from tb_memplugin.protos.hlo_pb2 import HloProto
    from tb_memplugin.readers.hlo import read_hlo

    proto = HloProto()
    try:
        proto.hlo_module.ParseFromString(
            compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
        )
        proto.buffer_assignment.ParseFromString(compiled.memory_analysis().serialized_buffer_assignment_proto)
    except (AttributeError, IndexError, TypeError) as error:
        remedy = "give a path, or jax.jit(f).lower(...).compile() of a JAX that has memory_analysis()"
        raise InputError("Not a compiled function with a buffer assignment", type(compiled).__name__, remedy) from error
    return read_hlo(proto.SerializeToString(), source="the compiled function")
