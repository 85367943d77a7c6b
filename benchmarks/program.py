"""A generated training step: instructions in schedule order, with their operands.

Layers run forward, then backward, and each keeps some of its results for its backward pass; Adam then updates every
weight in place, in the memory of the donated argument. Lifetimes are like those of a real step: many are short, some
are nested, and gradients live until the end.
"""

from dataclasses import dataclass
from random import Random

from benchmarks.shapes import SCALAR, WEIGHTS, Shape, activations

BUFFERS_PER_LAYER = 250
KEPT_SHARE = 0.1  # of a layer's forward results, kept for its backward pass
IN_PLACE_SHARE = 0.06  # of the results, which overwrite their operand
BITCAST_SHARE = 0.05  # of the operands, passed through a bitcast, which has no memory

WEIGHT_NAMES = ("attention']['qkv", "attention']['out", "mlp']['up", "mlp']['down")
STATES = ("params", "opt_state['mu']", "opt_state['nu']")
OPERATIONS = (  # name, opcode, op_name, function
    ("dot_general", "convolution", "attention/dot_general", "attention"),
    ("multiply_add_fusion", "fusion", "attention/mul", "attention"),
    ("exponential_reduce_fusion", "fusion", "attention/softmax/exp", "attention"),
    ("convert_bitcast_fusion", "fusion", "attention/convert_element_type", "attention"),
    ("fusion", "fusion", "mlp/dot_general", "mlp"),
    ("loop_tanh_fusion", "fusion", "mlp/gelu/tanh", "mlp"),
    ("add_rsqrt_fusion", "fusion", "normalize/rsqrt", "normalize"),
    ("copy", "copy", "mlp/transpose", "mlp"),
)


@dataclass(slots=True)
class Instruction:
    """One instruction, with one result. Instructions are identified by their position in the schedule."""

    name: str
    opcode: str
    op_name: str
    function: str  # whose source code it comes from
    shape: Shape | None  # None: the tuple of all results
    operands: list[int]
    in_place: bool = False  # overwrites the first operand, which is not used later
    donated: int = -1  # the argument whose memory the result reuses
    returned: bool = False


class Step:
    """A training step with exactly `buffers` results that have memory, in schedule order."""

    def __init__(self, buffers: int, seed: int) -> None:
        self.schedule: list[Instruction] = []
        self._rng = Random(seed)
        self._activations = activations(self._rng)
        layers = max(1, buffers // BUFFERS_PER_LAYER)
        # A layer has, per weight, its states as arguments and as results, and its gradient; and a constant. The step
        # has one embedding, one loss and one tuple of results.
        spare = buffers - layers * (len(WEIGHTS) * (2 * len(STATES) + 1) + 1) - 3
        if spare < 3 * layers:
            raise ValueError(f"a step needs at least {buffers - spare + 3 * layers} logical buffers, not {buffers}")
        forward = spare // (3 * layers)
        tail = spare - 3 * layers * forward

        arguments = [self._arguments(layer) for layer in range(layers)]
        constants = [self._add("constant", "constant", "", "layer", SCALAR, []) for _ in range(layers)]
        x = self._add("iota", "iota", "jit(train_step)/jvp(embedding)/iota", "loss", self._activations[0], [])
        kept: list[list[int]] = []
        for layer in range(layers):
            inputs = [*(states[0] for states in arguments[layer]), constants[layer]]
            x, keep = self._chain(forward, f"jvp(layer_{layer})", x, inputs, [], KEPT_SHARE)
            kept.append(keep)
        x, _ = self._chain(tail, "jvp(logits)", x, constants, [], 0)
        loss = x = self._add("reduce_fusion", "fusion", "jit(train_step)/jvp()/div", "loss", SCALAR, [x])
        self.schedule[loss].returned = True
        gradients: list[list[int]] = [[] for _ in range(layers)]
        for layer in reversed(range(layers)):
            scope = f"transpose(jvp(layer_{layer}))"
            inputs = [states[0] for states in arguments[layer]]
            x, _ = self._chain(2 * forward, scope, x, inputs, kept[layer], 0)
            gradients[layer] = [self._gradient(scope, weight, x) for weight in range(len(WEIGHTS))]
        results = [loss]
        for layer in range(layers):
            for states, gradient in zip(arguments[layer], gradients[layer], strict=True):
                results += self._adam(states, gradient)
        self._add("tuple", "tuple", "", "train_step", None, results)
        self.schedule[-1].returned = True

    def _add(
        self, stem: str, opcode: str, op_name: str, function: str, shape: Shape | None, operands: list[int]
    ) -> int:
        position = len(self.schedule)
        self.schedule.append(Instruction(f"{stem}.{position}", opcode, op_name, function, shape, operands))
        return position

    def _arguments(self, layer: int) -> list[list[int]]:
        """Add the states of each weight: the weight and Adam's two moments."""
        return [
            [
                self._add("param", "parameter", f"{state}['layer_{layer}']['{name}']", "train_step", shape, [])
                for state in STATES
            ]
            for name, shape in zip(WEIGHT_NAMES, WEIGHTS, strict=True)
        ]

    def _chain(
        self, count: int, scope: str, x: int, inputs: list[int], kept: list[int], keep: float
    ) -> tuple[int, list[int]]:
        """Add `count` results, each computed from the previous one and from `kept`, which is consumed from the end.

        Return the last result, and the results that the backward pass needs.
        """
        rng, total, keeping = self._rng, len(kept), list[int]()
        for done in range(count):
            stem, opcode, op_name, function = rng.choice(OPERATIONS)
            source = x
            operands = [self._bitcast(source) if rng.random() < BITCAST_SHARE else source]
            if rng.random() < 0.2:
                operands.append(rng.choice(inputs))
            while len(kept) * count > (count - 1 - done) * total:
                operands.append(kept.pop())
            before = self.schedule[source]
            # The input of the chain may be used elsewhere; its results are, only if they are kept.
            dies_here = done > 0 and source not in keeping[-1:]
            in_place = dies_here and rng.random() < IN_PLACE_SHARE
            shape = before.shape if in_place else rng.choice(self._activations)
            x = self._add(stem, opcode, f"jit(train_step)/{scope}/{op_name}", function, shape, operands)
            self.schedule[x].in_place = in_place
            if rng.random() < keep:
                keeping.append(x)
        return x, keeping

    def _bitcast(self, source: int) -> int:
        before = self.schedule[source]
        return self._add("bitcast", "bitcast", before.op_name, before.function, before.shape, [source])

    def _gradient(self, scope: str, weight: int, x: int) -> int:
        op_name = f"jit(train_step)/{scope}/{WEIGHT_NAMES[weight].split(chr(39))[0]}/dot_general"
        return self._add("transpose_fusion", "fusion", op_name, "loss", WEIGHTS[weight], [x])

    def _adam(self, states: list[int], gradient: int) -> list[int]:
        """Add the states after the step, each in the memory of the argument that it replaces."""
        weight, mu, nu = states
        results: list[int] = []
        for state, operands in ((mu, [gradient]), (nu, [gradient]), (weight, results)):
            shape = self.schedule[state].shape
            op_name = "jit(train_step)/adam/add"
            updated = self._add("add_multiply_fusion", "fusion", op_name, "adam", shape, [state, *operands])
            self.schedule[updated].donated = state
            self.schedule[updated].returned = True
            results.append(updated)
        return results
