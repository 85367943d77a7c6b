"""Functions of a script that read data which is not there, and what they return instead: ones of given shapes.

`data.py_batched_tfds=iter(int32[8,512])` is an endless iterator over arrays of ones, and
`get_batch=(int32[8,512], int32[8,512])` a function that returns a pair of them. `iter(int32[8,512], 32000)` is 32000
where the script asks for a number, such as that of examples or of words. Ones, as labels, masks and divisors
are rarely valid if they are zero.
"""

import ast
import operator
import sys
from collections.abc import Callable
from typing import Any

from tb_memplugin.errors import InputError

EXAMPLE = "write FUNCTION=TYPE, as in 'data.batches=iter({image: float32[8,224,224,3], label: int32[8]})'"
OPERATIONS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
NUMBER = 1_000_000  # that a fake input is where a script counts its examples


class FakeInput(int):
    """An endless iterator over batches. Its methods, items and attributes, such as `repeat`, return itself.

    Where a script computes with it, as with `builder.info.splits["train"].num_examples`, it is a number.
    """

    _batch: ast.expr

    def __new__(cls, batch: ast.expr, number: int) -> "FakeInput":
        made = super().__new__(cls, number)
        made._batch = batch
        return made

    def __iter__(self) -> "FakeInput":
        return self

    def __next__(self) -> Any:
        return ones(self._batch)

    def __len__(self) -> int:
        return int(self)

    def __call__(self, *_: Any, **__: Any) -> "FakeInput":
        return self

    def __getitem__(self, _: Any) -> "FakeInput":
        return self

    @property
    def element_spec(self) -> Any:
        """The types of a batch, as `tf.data.Dataset` gives them."""
        import jax

        flow: Any = sys.modules["tensorflow"]
        return jax.tree.map(lambda each: flow.TensorSpec(each.shape, each.dtype), ones(self._batch))

    def __getattr__(self, name: str) -> "FakeInput":
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> "FakeInput":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def parse_fake(text: str) -> tuple[str, Callable[..., Any]]:
    """Return the name of a function, and what takes its place. InputError where the text is no FUNCTION=TYPE."""
    name, separator, type_text = text.partition("=")
    try:
        tree = ast.parse(type_text.strip(), mode="eval").body
        ones(tree)
    except (SyntaxError, ValueError, TypeError, AttributeError, MemoryError):
        raise InputError("No type of an input", text, EXAMPLE) from None
    if not separator or not all(part.isidentifier() for part in name.split(".")):
        raise InputError("No function", text, EXAMPLE)
    return name, lambda *_, **__: ones(tree)


def ones(tree: ast.expr) -> Any:
    """Return ones in the shape of a syntax tree, such as that of `{image: float32[8,224,224,3]}`, or an iterator."""
    import numpy as np

    match tree:
        case ast.Dict(keys, values):
            return {_key(key): ones(value) for key, value in zip(keys, values, strict=True)}
        case ast.Tuple(elements):
            return tuple(map(ones, elements))
        case ast.List(elements):
            return [*map(ones, elements)]
        case ast.Subscript(ast.Name(dtype), index):
            sizes = index.elts if isinstance(index, ast.Tuple) else [index]
            return np.ones([*map(_size, sizes)], _dtype(dtype))
        case ast.Name(dtype):
            return np.ones((), _dtype(dtype))
        case ast.Call(ast.Name("iter"), [batch, *number]):
            ones(batch)
            return FakeInput(batch, _size(number[0]) if number else NUMBER)
        case ast.Constant(value):
            return value
    raise ValueError(ast.dump(tree))


def _size(tree: ast.expr) -> int:
    """Return a size, such as `{batch}//4` with the value of its knob."""
    if isinstance(tree, ast.BinOp) and type(tree.op) in OPERATIONS:
        return OPERATIONS[type(tree.op)](_size(tree.left), _size(tree.right))
    return int(ast.literal_eval(tree))


def _key(key: ast.expr | None) -> Any:
    return key.id if isinstance(key, ast.Name) else ast.literal_eval(key or ast.Constant(None))


def _dtype(name: str) -> Any:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)
