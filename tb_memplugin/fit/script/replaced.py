"""Functions of modules that are replaced when these are imported, and functions of a script when it is compiled."""

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tb_memplugin.fit.script.isolation import Isolation

Replacing = Callable[[Any], Any]  # returns what takes the place of a function
HOOK = "__tb_memplugin_replaced__"  # the name in a script of what takes the place of its functions


class Replaced(importlib.abc.MetaPathFinder):
    """Replaces functions by their full names, such as `package.module.Class.method`."""

    def __init__(self, replacing: Mapping[str, Replacing]) -> None:
        self._replacing = replacing
        self.unused = set(replacing)

    def install(self) -> None:
        """Begin. Modules that are loaded already are changed now."""
        sys.meta_path.insert(0, self)
        for name, module in [*sys.modules.items()]:
            if self._has(name):
                self._replace_in(module)

    def _has(self, module: str) -> bool:
        return any(each.startswith(f"{module}.") for each in self._replacing)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a module as Python does, and replace its functions once it is executed."""
        if not self._has(name):
            return None
        finders = (each for each in sys.meta_path if each is not self)
        spec = next(filter(None, (each.find_spec(name, path, target) for each in finders)), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_replace(module: Any) -> None:
                execute(module)
                self._replace_in(module)

            spec.loader.exec_module = execute_and_replace  # type: ignore[method-assign]
        return spec

    def _replace_in(self, module: Any) -> None:
        for full, replacing in self._replacing.items():
            *owners, name = full.removeprefix(f"{module.__name__}.").split(".")
            owner = module
            for each in owners:
                owner = getattr(owner, each, None)
            if full.startswith(f"{module.__name__}.") and owner is not None and hasattr(owner, name):
                setattr(owner, name, replacing(getattr(owner, name)))
                self.unused.discard(full)

    def compiled(self, source: bytes, path: str) -> Any:
        """Return a script's code. The bodies of replaced functions call what takes their place."""
        tree = ast.parse(source, path)
        owners: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
        owners += [(f"{each.name}.", each) for each in tree.body if isinstance(each, ast.ClassDef)]
        for prefix, owner in owners:
            for each in owner.body:
                if isinstance(each, ast.FunctionDef) and (name := f"{prefix}{each.name}") in self._replacing:
                    each.body = ast.parse(f"return {HOOK}({name!r})").body
                    self.unused.discard(name)
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def called(self, name: str) -> Any:
        """Return what a function of the script returns."""
        return self._replacing[name](None)()


def in_isolation(isolation: Isolation) -> dict[str, Replacing]:
    """Return replacements for functions of libraries that write through compiled extensions.

    Those that save arrays or events do nothing, as they would fill a disk with the zeros of a large model. Those of
    TensorFlow's file systems use the script's own folder.
    """

    def doing_nothing(name: str, result: Any) -> Replacing:
        def replaced(*_: Any, **__: Any) -> Any:
            isolation.note(isolation.saved, name)
            return result() if callable(result) else result

        return lambda _: replaced

    def redirected(paths: int, writes: bool) -> Replacing:
        def replacing(function: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                return function(*(isolation.place(each, writes) for each in given[:paths]), *given[paths:], **named)

            return call

        return replacing

    def opened(function: Any) -> Any:
        def call(self: Any, name: Any, mode: str, *rest: Any, **named: Any) -> None:
            function(self, isolation.place(name, mode[:1] in "wa"), mode, *rest, **named)

        return call

    nothing = {name: doing_nothing(name, result) for name, result in SAVING.items()}
    files = {f"{FILE_IO}.{name}_v2": redirected(*how) for name, how in FILES.items()}
    return {**nothing, **files, f"{FILE_IO}.FileIO.__init__": opened}


def _no_writer() -> Any:
    return importlib.import_module("tensorflow.python.ops.summary_ops_v2").create_noop_writer()


# Functions that save, with what they return.
SAVING: Mapping[str, Any] = {
    "orbax.checkpoint.checkpoint_manager.CheckpointManager.save": True,
    "orbax.checkpoint._src.checkpointers.checkpointer.Checkpointer.save": None,
    "orbax.checkpoint._src.checkpointers.async_checkpointer.AsyncCheckpointer.save": None,
    "orbax.checkpoint._src.checkpointers.standard_checkpointer.StandardCheckpointer.save": None,
    "orbax.checkpoint.experimental.v1._src.saving.saving.save": None,
    "orbax.checkpoint.experimental.v1._src.saving.saving.save_checkpointables": None,
    "orbax.checkpoint.experimental.v1._src.training.checkpointer.Checkpointer.save": True,
    "flax.training.checkpoints.save_checkpoint": "",
    "flax.training.checkpoints.save_checkpoint_multiprocess": "",
    "clu.checkpoint.Checkpoint.save": "",
    "equinox._serialisation.tree_serialise_leaves": None,
    "safetensors.flax.save_file": None,
    "safetensors.numpy.save_file": None,
    "tensorflow.python.ops.summary_ops_v2.create_file_writer_v2": _no_writer,
}
FILE_IO = "tensorflow.python.lib.io.file_io"
# Functions of TensorFlow's file systems, with how many paths they take, and whether they write.
FILES = {
    **dict.fromkeys(("create_dir", "recursive_create_dir", "delete_file", "delete_recursively"), (1, True)),
    **dict.fromkeys(("file_exists", "is_directory", "list_directory", "get_matching_files", "stat"), (1, False)),
    **dict.fromkeys(("rename", "copy"), (2, True)),
}
