"""A training step that was never compiled, but could have been: what is computed, in which order, from what.

Layers run forward, then backward, and each keeps some of its results for its backward pass; Adam then updates
every weight in place, in the memory of the donated argument. That gives the lifetimes a real step has: many
short, some nested like brackets, gradients that wait for the end.
"""

from dataclasses import dataclass
from random import Random

from benchmarks.shapes import SCALAR, WEIGHTS, Shape, activations

BUFFERS_PER_LAYER = 250
KEPT = 0.1  # of a layer's forward results, for its backward pass
IN_PLACE = 0.06  # of the results, written over their operand
BITCASTS = 0.05  # of the operands, renamed by an instruction that owns no memory

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
    """One result. Instructions are known by their position in the schedule."""

    name: str
    opcode: str
    op_name: str
    function: str  # whose source asked for it
    shape: Shape | None  # None: the tuple of all results
    operands: list[int]
    in_place: bool = False  # written over the first operand, which nothing else needs
    donated: int = -1  # the argument in whose memory the result is returned
    returned: bool = False


class Step:
    """A training step of exactly `buffers` results that own memory, in schedule order."""

    def __init__(self, buffers: int, seed: int) -> None:
        self.schedule: list[Instruction] = []
        self._rng = Random(seed)
        self._activations = activations(self._rng)
        layers = max(1, buffers // BUFFERS_PER_LAYER)
        # A layer: per weight, its states as arguments and as results, and its gradient; and a constant. Then
        # the embedding, the loss and the tuple of results, each once.
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
            x, keep = self._chain(forward, f"jvp(layer_{layer})", x, inputs, [], KEPT)
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
        """The states of each weight: the weight itself, and Adam's two moments."""
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
        """`count` results, each computed from the one before. Uses up `kept`, last in first out.

        Returns the last result, and those that a backward pass will ask for.
        """
        rng, total, keeping = self._rng, len(kept), list[int]()
        for done in range(count):
            stem, opcode, op_name, function = rng.choice(OPERATIONS)
            source = x
            operands = [self._bitcast(source) if rng.random() < BITCASTS else source]
            if rng.random() < 0.2:
                operands.append(rng.choice(inputs))
            while len(kept) * count > (count - 1 - done) * total:
                operands.append(kept.pop())
            before = self.schedule[source]
            # What comes into the chain may be needed elsewhere; what it made itself, only if it is kept.
            dies_here = done > 0 and source not in keeping[-1:]
            in_place = dies_here and rng.random() < IN_PLACE
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
        """The states after the step, each in the memory of the argument it replaces."""
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
