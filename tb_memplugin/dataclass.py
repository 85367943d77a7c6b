"""Dataclasses that are made without compiling code.

The standard library compiles up to six functions for each class, which takes 0.8 ms. A command makes 50 classes, and
they took longer than its reading of a small profile. `fields`, `replace` and `asdict` work as with other dataclasses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]


def _light_dataclass(
    plain: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True
) -> Any:
    """Decorate a class, as `dataclasses.dataclass` does with these options."""

    def decorate(cls: Any) -> Any:
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse
        if eq:
            cls.__eq__ = _equals
            cls.__hash__ = _hash if frozen else None
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
        if frozen and slots:  # to be copied and pickled
            made.__getstate__, made.__setstate__ = _values, _restore
        made.__init__ = _init_of(made, slots)
        made.__repr__ = _text
        return made

    return decorate if plain is None else decorate(plain)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _light_dataclass


def _init_of(cls: Any, slots: bool) -> Callable[..., None]:
    """Return the function that initializes an object of a dataclass."""
    names = tuple(field.name for field in dataclasses.fields(cls))
    defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
    factories = [
        (f.name, f.default_factory) for f in dataclasses.fields(cls) if f.default_factory is not dataclasses.MISSING
    ]
    expected = set(names)
    after = getattr(cls, "__post_init__", None)

    def init(self: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(names, values, strict=False))
        if len(values) > len(names) or not given.keys().isdisjoint(named):
            raise TypeError(f"{cls.__qualname__}() got a field twice, or too many")
        given = {**defaults, **given, **named}
        for name, make in factories:
            if name not in given:
                given[name] = make()
        if given.keys() != expected:
            raise TypeError(f"{cls.__qualname__}() is missing, or has no: {', '.join(sorted(given.keys() ^ expected))}")
        if slots:
            _restore(self, [given[name] for name in names])
        else:
            vars(self).update(given)
        if after is not None:
            after(self)

    return init


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, field) for field in self.__dataclass_fields__)


def _restore(self: Any, values: Iterable[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, values, strict=True):
        object.__setattr__(self, name, value)


def _equals(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _text(self: Any) -> str:
    named = zip(self.__dataclass_fields__, _values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in named)})"


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
