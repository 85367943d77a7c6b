"""Records for JSON, copied from the attributes of the objects that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any, NotRequired, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

T = TypeVar("T")
MISSING = object()


def record(kind: type[T], /, *sources: object, **given: Any) -> T:
    """Return a TypedDict of `kind`, whose values are the attributes, or the keys, of the same names of `sources`.

    A key that is `given` has that value, and the first source with an attribute of the key's name has the others:

        class FleetDeviceJson(TypedDict):
            host: str
            peak_bytes: int
            growth: str | None

        record(FleetDeviceJson, device, device.summary, growth=device.summary.growth or None)

    A key whose type is another TypedDict, or a list of one, is copied in the same way from the object or objects of the
    attribute; one that is given is used unchanged. A tuple or an array becomes a list, as it would in JSON.
    A key without a value, or a given value without a key, is a TypeError: types cannot be checked statically here.
    """
    keys = _keys(cast(Any, kind))
    if unknown := given.keys() - keys:
        raise TypeError(f"{kind.__name__} has no key {', '.join(sorted(unknown))}")
    found: Any = {}
    for key, (nested, is_required) in keys.items():
        value = given.get(key, MISSING)
        if value is MISSING:
            value = _attribute(sources, key)
            if value is not MISSING:
                value = _copied(value, nested)
            elif is_required:
                raise TypeError(f"{kind.__name__}: nothing has a value for {key}")
            else:
                continue
        found[key] = value
    return found  # type: ignore[no-any-return]


def records(kind: type[T], sources: Iterable[object]) -> list[T]:
    """Return a record of each source."""
    return [record(kind, source) for source in sources]


def _attribute(sources: tuple[object, ...], key: str) -> Any:
    for source in sources:
        value = source.get(key, MISSING) if isinstance(source, Mapping) else getattr(source, key, MISSING)
        if value is not MISSING:
            return value
    return MISSING


def _copied(value: Any, nested: Any) -> Any:
    """Return an attribute's value for JSON. `nested`: the TypedDict of the value, or of its items."""
    if nested is None:
        return value.tolist() if hasattr(value, "tolist") else list(value) if type(value) is tuple else value
    if value is None or isinstance(value, Mapping):
        return value
    if isinstance(value, list) or type(value) is tuple:
        return [_copied(item, nested) for item in value]
    return record(nested, value)


@cache
def _keys(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the TypedDict inside the type of each key, or None, and whether the key is required."""
    marked = get_type_hints(kind, include_extras=True)  # Python leaves NotRequired out of the keys where it is a string
    return {
        key: (_nested(hint), key in kind.__required_keys__ and get_origin(marked[key]) is not NotRequired)
        for key, hint in get_type_hints(kind).items()
    }


def _nested(hint: Any) -> Any:
    if get_origin(hint) in (list, Union, UnionType):
        return next((nested for each in get_args(hint) if (nested := _nested(each))), None)
    return hint if is_typeddict(hint) else None
