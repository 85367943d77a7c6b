"""A program before optimization, from an XLA dump, which is compiled again without the code that it comes from.

It takes the place of a lowered function of JAX. Changes are made to its StableHLO, where JAX itself would make them:
donation is an attribute of an argument of `main`, and so is a sharding.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Changes, is_inside
from tb_memplugin.fit.step.dumped_shardings import (
    OLDER,
    as_shardy,
    drop_older,
    frontend_text,
    has_named,
    shard_arguments,
    shard_named_arguments,
)
from tb_memplugin.protos.hlo_pb2 import HloModuleProto, HloProto

HOST_SPACE = "5"
DONOR = "jax.buffer_donor"
SHARDY = b"xla.sdy."  # begins the names of Shardy's attributes and calls, which XLA's older partitioner refuses
NEEDS_CODE = "give the step's code to `tb-memplugin fit --try`"


class DumpedProgram:
    """A program of a dump, with changes, for devices of a target."""

    def __init__(self, step: str, devices: Sequence[Any], changes: Changes) -> None:
        self._proto = _read(step)
        assignment = self._proto.device_assignment
        self._replicas, self._partitions = max(assignment.replica_count, 1), max(assignment.computation_count, 1)
        count = self._replicas * self._partitions
        if count > len(devices):
            text = f"name a target with at least {count} devices"
            raise InputError(f"The program is partitioned for {count} devices", step, text)
        if changes.drops_unused or changes.knobs or changes.remat:
            raise InputError("A program of a dump has no knobs, and keeps unused arguments", step, NEEDS_CODE)
        self._devices = devices[:count]
        self._module, self._uses_shardy = _changed_module(self._proto, changes)

    def compiler_ir(self, dialect: str) -> Any:
        """Return the program as a module of StableHLO."""
        return self._module

    def compile(self, compiler_options: Mapping[str, Any]) -> None:
        """Compile the program, as JAX compiles a lowered function."""
        import numpy as np
        from jax._src import compiler

        lib: Any = import_module("jax._src.lib")
        assigned = np.array(self._devices).reshape(self._replicas, self._partitions)
        options = compiler.get_compile_options(self._replicas, self._partitions, assigned, dict(compiler_options))
        build = options.executable_build_options
        build.use_shardy_partitioner = self._uses_shardy
        if not build.use_shardy_partitioner:  # the older partitioner chooses shardings of results that have none
            main = import_module("jaxlib.mlir.ir").SymbolTable(self._module.operation)["main"]
            build.allow_spmd_sharding_propagation_to_output = [
                OLDER not in each for each in main.attributes["res_attrs"]
            ]
        devices = lib.xla_client.DeviceList(tuple(self._devices))
        compiler.backend_compile_and_load(self._devices[0].client, self._module, devices, options, [])


def argument_names(module: HloModuleProto) -> dict[int, str]:
    """Return the names that JAX gives to the arguments of a program, such as `params['w']`, by their numbers."""
    entry = next(each for each in module.computations if each.id == module.entry_computation_id)
    arguments = [each for each in entry.instructions if each.opcode == b"parameter"]
    found = {each.parameter_number: each.metadata.op_name.decode(errors="replace") for each in arguments}
    return dict(sorted(found.items()))


def _chosen(paths: Mapping[int, str], names: Sequence[str]) -> list[int]:
    """Return the numbers of the arguments with these names, or within them. InputError for a name without any."""
    for name in names:
        if not any(is_inside(path, name) for path in paths.values()):
            raise InputError("No such argument", name, f"the program has {', '.join([*paths.values()][:8])}")
    return [number for number, path in paths.items() if any(is_inside(path, name) for name in names)]


def _has_shardy(proto: HloModuleProto) -> bool:
    return SHARDY in proto.SerializeToString()


def _changed_module(proto: HloModuleProto, changes: Changes) -> tuple[Any, bool]:
    """Return the program as a module of StableHLO, with changes, and whether its shardings are Shardy's."""
    from jax._src.interpreters.mlir import make_ir_context

    lib: Any = import_module("jax._src.lib")
    ir: Any = import_module("jaxlib.mlir.ir")
    names = argument_names(proto)
    with make_ir_context():
        module = ir.Module.parse(lib._jax.mlir.hlo_to_stablehlo(proto.SerializeToString()))
        main = ir.SymbolTable(module.operation)["main"]
        if _has_shardy(proto):
            drop_older(ir, module)
        for wanted in changes.sharded:
            shard = shard_named_arguments if has_named(main) else shard_arguments
            shard(ir, module, _chosen(names, wanted.arguments), wanted.axis)
        donors = [(number, DONOR, ir.BoolAttr.get(True)) for number in _chosen(names, changes.donated)]
        _add(ir, main, "arg_attrs", len(main.type.inputs), [*donors, *_places(ir, module, "arg")])
        _add(ir, main, "res_attrs", len(main.type.results), _places(ir, module, "out"))
        if has_named(main):
            return ir.Module.parse(as_shardy(module.operation.get_asm())), True
    return module, _has_shardy(proto)


def _places(ir: Any, module: Any, prefix: str) -> Iterator[tuple[int, str, Any]]:
    """Yield the layouts and memories of arguments or results that are not the default, as attributes by number.

    In HLO, the module has them: `arg_memory_spaces = "0;5"` for two arguments.
    """
    own = module.operation.attributes
    for number, layout in enumerate(frontend_text(own, f"{prefix}_layout_modes").split(";")):
        if layout not in ("", "default"):
            yield number, "mhlo.layout_mode", ir.StringAttr.get(layout)
    for number, space in enumerate(frontend_text(own, f"{prefix}_memory_spaces").split(";")):
        if space == HOST_SPACE:
            yield number, "mhlo.memory_kind", ir.StringAttr.get("pinned_host")


def _add(ir: Any, main: Any, name: str, count: int, added: Iterable[tuple[int, str, Any]]) -> None:
    """Add attributes to arguments or results of `main`, by number and name."""
    before = main.attributes[name] if name in main.attributes else [()] * count
    attributes = [{one.name: one.attr for one in each} for each in before]
    for number, key, value in added:
        attributes[number][key] = value
    main.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])


def _read(step: str) -> HloModuleProto:
    path = Path(step.rpartition(":")[0])
    try:
        content = path.read_bytes()
        module = HloProto.FromString(gzip.decompress(content) if path.suffix == ".gz" else content).hlo_module
    except (OSError, EOFError, DecodeError) as error:
        raise InputError(f"The program cannot be read ({error})", str(path), "dump it again") from None
    if not any(each.id == module.entry_computation_id for each in module.computations):
        raise InputError("The file has no program", str(path), "dump it again")
    return module
