"""The size of an answer: lists, texts and objects are cut, and what is left out is counted."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from tb_memplugin.views.answers.asked import MAX_SELECTOR

NESTED = 3  # items of a list within an item of a list
DEEPER = 2  # items of lists within those
NESTED_SHARE = 5  # where more items are asked for, nested lists have one for each NESTED_SHARE of them
MAX_TEXT = 300  # characters
MAX_CODE = 3000
MAX_KEYS = 40  # more than any object of ours has; maps of a user's knobs may have any number
MARK = "…"
LONG_TEXTS = {"id": MAX_SELECTOR, "recording": MAX_SELECTOR, "change": MAX_CODE}  # other texts have MAX_TEXT
WHOLE = ("next", "omitted")
COMPLETE = ("roles",)  # lists with an item for each kind, of which there are few

T = TypeVar("T")
ListLimits = tuple[int | None, ...]  # of lists, of those within their items, and so on


def bounded(answer: T, top: int | None) -> T:
    """Return an answer with at most `top` items in each list; with None, all of them.

    An object whose lists were cut has `omitted`: by key, the number of items that were left out. Lists within an item
    of a list have fewer, and those in COMPLETE all. Texts of more than MAX_TEXT characters end with an ellipsis, ids
    without one.
    """
    deeper = None if top is None else max(min(top, DEEPER), top // NESTED_SHARE)
    return cast(T, _bounded(answer, "", (top, fewer(top), deeper)))


def fewer(top: int | None) -> int | None:
    """Return the number of items of lists within an item of a list, and of overviews of longer lists."""
    return None if top is None else max(min(top, NESTED), top // NESTED_SHARE)


def _bounded(value: Any, key: str, most: ListLimits) -> Any:
    if isinstance(value, str):
        return _text(value, key)
    if isinstance(value, dict):
        return _object(value, most)
    if isinstance(value, list | tuple):
        return [_bounded(item, key, (*most[1:], most[-1])) for item in value]
    return value


def _object(found: dict[str, Any], limits: ListLimits) -> dict[str, Any]:
    most = limits[0]
    omitted = {key: count for key, count in found.get("omitted", {}).items() if count}
    kept: dict[str, Any] = {}
    for key, value in list(found.items())[: None if most is None else MAX_KEYS]:
        if key in WHOLE:
            continue
        if isinstance(value, list | tuple) and most is not None and len(value) > most and key not in COMPLETE:
            omitted[key] = omitted.get(key, 0) + len(value) - most
            value = value[:most]
        kept[key] = _bounded(value, key, limits)
    if len(found) > MAX_KEYS and most is not None:
        omitted["keys"] = len(found) - MAX_KEYS
    rest = {"next": found["next"]} if "next" in found else {}
    return {**kept, **({"omitted": omitted} if omitted else {}), **rest}


def _text(text: str, key: str) -> str:
    most = LONG_TEXTS.get(key, MAX_TEXT)
    if len(text) <= most:
        return text
    return text[:most] if most == MAX_SELECTOR else text[: most - 1] + MARK
