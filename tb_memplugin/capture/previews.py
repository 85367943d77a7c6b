"""What the jitted functions of a block would need, without executing the large ones: `capture.preview`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
from tb_memplugin.capture.program_report import ProgramReport
from tb_memplugin.capture.programs import CompiledProgram, CompileOutOfMemory, main_memory
from tb_memplugin.capture.programs import compile as compile_program
from tb_memplugin.fit.script.jits import CalledJit
from tb_memplugin.fit.script.on_target import Lowerer, ScriptProgram
from tb_memplugin.fit.script.watching import LARGE, Watcher
from tb_memplugin.sizes import bytes_text, counted


@dataclass
class PreviewedJit:
    """A large function that a block called. It is compiled for this process's devices when it is first asked about."""

    jit: CalledJit
    lowered: ScriptProgram = field(repr=False)
    beside_bytes: int  # of one device, in arrays that the block holds and the function does not use
    _compiled: CompiledProgram | CompileOutOfMemory | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.jit.name

    @property
    def program(self) -> CompiledProgram | CompileOutOfMemory:
        """The compiled function, or the program that the compiler refused, for `capture.report` and `compiled`."""
        if self._compiled is None:
            try:
                self._compiled = compile_program(cast(Any, self.lowered))
            except CompileOutOfMemory as refused:
                self._compiled = refused
        return self._compiled

    @property
    def reserved_bytes(self) -> int:
        """The bytes of one device that it needs: its arguments, results and temporaries."""
        return reserved_bytes(main_memory(self.program))

    def report(self) -> ProgramReport:
        """Print and return an explanation of the program's peak."""
        return self.program.report()

    def __str__(self) -> str:
        beside = f", beside {bytes_text(self.beside_bytes)} in other arrays" if self.beside_bytes else ""
        called = counted(self.jit.calls, "call")
        return f"{self.jit}, {called}: {bytes_text(self.reserved_bytes)} of each device{beside}"


@dataclass
class Preview:
    """The large functions of a block, in the order of their first calls."""

    jits: list[PreviewedJit] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """The bytes of one device that the block needs at most, in large functions and arrays beside them."""
        return max((each.reserved_bytes + each.beside_bytes for each in self.jits), default=0)

    def __str__(self) -> str:
        if not self.jits:
            return f"No jitted function with more than {bytes_text(LARGE)} of arguments and results was called"
        return "\n".join([*map(str, self.jits), f"At most {bytes_text(self.bytes)} of each device"])


@contextmanager
def previewing() -> Iterator[Preview]:
    """Do not execute jitted functions with more than 64 MiB of arguments and results in this block; yield them.

    Their results are zeros, placed as the real ones would be: on devices of the CPU they take no memory, on others as
    much as the real ones. Smaller functions are executed. After the block, `print(preview)` compiles each of them for
    the devices of this process, and says what it needs. InputError for an unknown version of JAX.
    """
    import jax

    preview, known = Preview(), dict[int, PreviewedJit]()
    lowerer = Lowerer({each.id: each for each in jax.local_devices()}, jax.default_backend())

    def heard(jit: CalledJit, arguments: Sequence[Any], parameters: dict[str, Any]) -> None:
        if jit.bytes <= LARGE:
            return
        beside = watcher.bytes_beside([*arguments, *parameters["jaxpr"].consts])
        if id(jit) in known:
            known[id(jit)].beside_bytes = max(known[id(jit)].beside_bytes, beside)
            return
        known[id(jit)] = PreviewedJit(jit, lowerer.program(arguments, parameters), beside)
        preview.jits.append(known[id(jit)])

    watcher = Watcher(lowerer, heard)
    with watcher.watching():
        yield preview


def preview(function: Callable[..., Any] | None = None, *positional: Any, **named: Any) -> Any:
    """Preview a call, `print(capture.preview(train, batch))`, or a block, `with capture.preview() as preview:`."""
    if function is None:
        return previewing()
    with previewing() as found:
        function(*positional, **named)
    return found
