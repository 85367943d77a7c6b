"""Arguments of a dumped program, split along an axis of their mesh: what `shard` does to a traced function.

A dump has shardings as texts of Shardy, such as `#sdy.sharding<@mesh, [{"data"}, {}]>`, as attributes of arguments, and
of calls that return what they are called with, one for each result of `main`. Those of JAX 0.12 have their mesh in
themselves, such as `{mesh['data'=4], [{'data'}, {}]}`, as attributes of arguments, results and what is returned.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.step.changed_program import REMEDY, place_to_split

ATTRIBUTES, SHARDING, MESHES = "mhlo.frontend_attributes", "xla.sdy.sharding", "xla.sdy.meshes"
OLDER = "mhlo.sharding"  # the same for XLA's older partitioner
MESH = re.compile(r"(\w+) = #sdy\.mesh<\[(.*?)\]")
AXIS = re.compile(r'"([^"]+)"=(\d+)')
DIMENSIONS = re.compile(r"<@(\w+), \[(.*?)\]")
DIMENSION = re.compile(r"\{([^}]*)\}")
NAMED = re.compile(r"\{mesh\[(.*?)\], \[(.*?)\]")
NAMED_ATTRIBUTE = re.compile(r'mhlo\.sharding = "\{mesh\[(.*?)\], \[(.*?)\]\}"')
REPLICATED = re.compile(r'(?:, )?mhlo\.sharding = "\{replicated\}"')  # of scalars, which need none


def split(sharding: str, meshes: str, shape: Sequence[int], axis: str) -> str | None:
    """Return a sharding with one more dimension split along the axis; None if no dimension can be split."""
    found = DIMENSIONS.search(sharding)
    axes = AXIS.findall(dict(MESH.findall(meshes)).get(found[1], "")) if found is not None else []
    free = {name: int(size) for name, size in axes if f'"{name}"' not in sharding}
    if found is None:
        return None
    split_so_far = DIMENSION.findall(found[2])
    place = place_to_split(shape, ['"' not in axes for axes in split_so_far], free, axis)
    if place is None:
        return None
    split_so_far[place[0]] = f'"{place[1]}"'
    after = ", ".join(f"{{{axes}}}" for axes in split_so_far)
    return f"{sharding[: found.start(2)]}{after}{sharding[found.end(2) :]}"


def shard_arguments(ir: Any, module: Any, numbers: Iterable[int], axis: str) -> None:
    """Split the arguments of `main` with these numbers, and as many results with the same shape, dtype and sharding."""
    main, meshes = ir.SymbolTable(module.operation)["main"], frontend_text(module.operation.attributes, MESHES)
    given, found = [*main.arg_attrs], False
    waiting = [call for call in map(_call, [*main.entry_block.operations][-1].operands) if call is not None]
    for number in numbers:
        type_, before = main.arguments[number].type, frontend_text(given[number], SHARDING)
        after = split(before, meshes, getattr(type_, "shape", ()), axis)
        if after is None:
            continue
        own = {one.name: one.attr for one in given[number]}
        given[number] = ir.DictAttr.get({**own, ATTRIBUTES: _frontend(ir, given[number], after)})
        found = True
        for call in waiting:
            text = frontend_text(call.attributes, SHARDING)
            if _dimensions(text) == _dimensions(before) and call.results[0].type == type_:
                changed = text.replace(_dimensions(before), _dimensions(after))
                call.attributes[ATTRIBUTES] = _frontend(ir, call.attributes, changed)
                waiting.remove(call)
                break
    if not found:
        raise InputError("Nothing to split along the axis", axis, REMEDY)
    main.arg_attrs = ir.ArrayAttr.get(given)


def has_named(main: Any) -> bool:
    """Return whether an argument or a result of `main` has a sharding with a mesh."""
    return any(NAMED.search(_older(each)) for name in ("arg_attrs", "res_attrs") for each in _attributes(main, name))


def split_named(sharding: str, shape: Sequence[int], axis: str) -> str | None:
    """As `split`, of a sharding with its mesh."""
    found = NAMED.search(sharding)
    if found is None:
        return None
    axes, dimensions = (text.replace("'", '"') for text in found.groups())
    after = split(f"<@mesh, [{dimensions}]", f"mesh = #sdy.mesh<[{axes}]", shape, axis)
    if after is None:
        return None
    own = after.removeprefix("<@mesh, [").removesuffix("]").replace('"', "'")
    return f"{sharding[: found.start(2)]}{own}{sharding[found.end(2) :]}"


def shard_named_arguments(ir: Any, module: Any, numbers: Iterable[int], axis: str) -> None:
    """As `shard_arguments`, where the shardings have their mesh."""
    main = ir.SymbolTable(module.operation)["main"]
    given, results, found = _attributes(main, "arg_attrs"), _attributes(main, "res_attrs"), False
    returned, waiting = [*main.entry_block.operations][-1].operands, [*range(len(results))]
    for number in numbers if given else ():
        type_, before = main.arguments[number].type, _older(given[number])
        after = split_named(before, getattr(type_, "shape", ()), axis)
        if after is None:
            continue
        given[number], found = _with_older(ir, given[number], after), True
        same = (place for place in waiting if main.type.results[place] == type_ and _older(results[place]) == before)
        if (place := next(same, None)) is not None:
            waiting.remove(place)
            results[place] = _with_older(ir, results[place], after)
            if _older(getattr(returned[place].owner, "attributes", ())) == before:
                returned[place].owner.attributes[OLDER] = ir.StringAttr.get(after)
    if not found:
        raise InputError("Nothing to split along the axis", axis, REMEDY)
    main.arg_attrs = ir.ArrayAttr.get(given)
    if results:
        main.attributes["res_attrs"] = ir.ArrayAttr.get(results)


def as_shardy(module: str) -> str:
    """Return the text of a module with Shardy's shardings: XLA's older partitioner aborts where they have a mesh."""
    meshes: dict[str, str] = {}

    def replace(line: str) -> str:
        """A function has a sharding for each argument and result, an operation one for all of its results."""
        form = "#sdy.sharding<{}>" if "func.func" in line else "#sdy.sharding_per_value<[<{}>]>"

        def shardy(found: re.Match[str]) -> str:
            axes, dimensions = (text.replace("'", '"') for text in found.groups())
            mesh = meshes.setdefault(axes, f"mesh_{len(meshes)}")
            return f"sdy.sharding = {form.format(f'@{mesh}, [{dimensions}]')}"

        return REPLICATED.sub("", NAMED_ATTRIBUTE.sub(shardy, line))

    lines = [*map(replace, module.splitlines())]
    inside = next(number for number, line in enumerate(lines) if line.startswith("module")) + 1
    lines[inside:inside] = [f"sdy.mesh @{name} = <[{axes}]>" for axes, name in meshes.items()]
    return "\n".join(lines)


def _attributes(main: Any, name: str) -> list[Any]:
    """Return the attributes of each argument or of each result; empty where none has any."""
    return [*main.attributes[name]] if name in main.attributes else []


def _older(attributes: Any) -> str:
    return str(attributes[OLDER].value) if OLDER in attributes else ""


def _with_older(ir: Any, attributes: Any, sharding: str) -> Any:
    return ir.DictAttr.get({**{one.name: one.attr for one in attributes}, OLDER: ir.StringAttr.get(sharding)})


def drop_older(ir: Any, module: Any) -> None:
    """Drop the shardings for XLA's older partitioner: XLA takes it if results of `main` have them."""
    for function in module.body.operations:
        for name in ("arg_attrs", "res_attrs"):
            if name in function.attributes:
                kept = [{one.name: one.attr for one in each if one.name != OLDER} for each in function.attributes[name]]
                function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in kept])


def _call(result: Any) -> Any:
    """Return the call that has the sharding of a result of `main`, which is at most reshaped after it; else None."""
    owner = result.owner
    while getattr(owner, "name", "") == "stablehlo.reshape":
        owner = owner.operands[0].owner
    return owner if frontend_text(getattr(owner, "attributes", ()), SHARDING) else None


def _dimensions(sharding: str) -> str:
    found = DIMENSIONS.search(sharding)
    return found[0] if found is not None else ""


def frontend_text(attributes: Any, name: str) -> str:
    """Return one of the frontend attributes; empty without it."""
    frontend: Any = attributes[ATTRIBUTES] if ATTRIBUTES in attributes else ()
    return str(frontend[name].value) if name in frontend else ""


def _frontend(ir: Any, attributes: Any, sharding: str) -> Any:
    """Return the frontend attributes with another sharding."""
    frontend = {one.name: one.attr for one in attributes[ATTRIBUTES]}
    return ir.DictAttr.get({**frontend, SHARDING: ir.StringAttr.get(sharding)})
