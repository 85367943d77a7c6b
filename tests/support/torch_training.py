"""A PyTorch training loop as its caching allocator sees it, with stacks from PyTorch's own files.

Linear layers and SGD with momentum: every tensor's role is known, because the loop records it.
"""

from __future__ import annotations

import pickle
from typing import Any

from support.caching_allocator import MIB, CachingAllocator

from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file

Frames = list[dict[str, Any]]


def frames(*functions: tuple[str, str, int]) -> Frames:
    return [{"name": name, "filename": file, "line": line} for name, file, line in functions]


MAIN = ("<module>", "train.py", 90)
MOVE = frames(
    ("_apply", "/site-packages/torch/nn/modules/module.py", 927),
    ("to", "/site-packages/torch/nn/modules/module.py", 1342),
    MAIN,
)
FORWARD = frames(
    ("at::_ops::addmm::call(at::Tensor const&)", "??", 0),
    ("forward", "/site-packages/torch/nn/modules/linear.py", 125),
    ("_call_impl", "/site-packages/torch/nn/modules/module.py", 1762),
    ("forward", "model.py", 20),
    ("train", "train.py", 30),
    MAIN,
)
# Allocations of one block, called at model.py:20 for each layer: the tensors its lines keep for the backward pass.
INNER = [
    frames(
        ("at::_ops::addmm::call(at::Tensor const&)", "??", 0),
        ("forward", "/site-packages/torch/nn/modules/linear.py", 125),
        ("_call_impl", "/site-packages/torch/nn/modules/module.py", 1762),
        ("forward", "block.py", line),
        ("_call_impl", "/site-packages/torch/nn/modules/module.py", 1762),
        ("forward", "model.py", 20),
        ("train", "train.py", 30),
        MAIN,
    )
    for line in (7, 8, 9)
]
RESULT = [dict(frame, line=10) if frame["filename"] == "block.py" else frame for frame in INNER[0]]
BACKWARD = frames(
    ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??", 0),
    ("torch::autograd::generated::AddmmBackward0::apply()", "??", 0),
    ("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "??", 0),
)
STEP = frames(
    ("at::_ops::clone::call(at::Tensor const&)", "??", 0),
    ("_multi_tensor_sgd", "/site-packages/torch/optim/sgd.py", 447),
    ("step", "/site-packages/torch/optim/sgd.py", 120),
    ("wrapper", "/site-packages/torch/optim/optimizer.py", 485),
    ("train", "train.py", 33),
    MAIN,
)
ZERO = frames(("zero_grad", "/site-packages/torch/optim/optimizer.py", 900), ("train", "train.py", 31), MAIN)
KEPT = frames(("append_loss", "train.py", 35), MAIN)
LOSS = 40 << 20  # larger than any block that the loop frees: it gets a segment of its own, without rounding
STEP_MARK = "Optimizer.step#SGD.step"


class Training:
    """A training loop. `truth` maps the number of each alloc event to the tensor's role.

    `leaks`: each iteration keeps its loss. `steps`: iterations are marked as such. Activations are as large as
    the `batch`, which may be cut into `parts`, each with a forward and a backward pass of its own, before the step.
    `blocks`: each layer keeps more than its result, or with `checkpoint` recomputes it in its backward pass.
    `fused`: the optimizer allocates nothing once it has its state.
    """

    def __init__(
        self,
        iterations: int,
        *,
        clears: bool,
        layers: int = 4,
        marks: bool = True,
        leaks: bool = False,
        steps: bool = False,
        batch: int = 1,
        parts: int = 1,
        blocks: bool = False,
        checkpoint: bool = False,
        fused: bool = False,
    ) -> None:
        self.allocator = CachingAllocator()
        self.truth: dict[int, Role] = {}
        self.marks: list[dict[str, Any]] = []
        self._marked = marks
        self.layers = layers
        for layer in range(layers):
            self.make(layer, MOVE, Role.PARAMETER)
        gradients: list[int] = []
        momenta: list[int] = []
        for number in range(iterations):
            self.mark("START", f"step {number}", steps)
            if clears:
                for gradient in gradients:
                    self.free(gradient, ZERO)
                gradients = []
            for _ in range(parts):
                activations, inner = list[int](), list[list[int]]()
                for layer in range(layers):
                    inner.append(self.inside(layer, batch, Role.TEMPORARY if checkpoint else Role.ACTIVATION, blocks))
                    activations.append(
                        self.make(layer + 7, RESULT if blocks else FORWARD, Role.ACTIVATION, batch / parts)
                    )
                    if checkpoint:
                        self.free_all(inner.pop(), INNER[0])
                        inner.append([])
                for layer in reversed(range(layers)):
                    if checkpoint:
                        inner[layer] = self.inside(layer, batch, Role.TEMPORARY, blocks)
                    rest = self.make(layer, BACKWARD, Role.TEMPORARY)
                    if len(gradients) < layers:
                        gradients.append(self.make(layer, BACKWARD, Role.GRADIENT))
                    self.free(rest, BACKWARD)
                    self.free_all([activations[layer], *inner[layer]], BACKWARD)
            if leaks:
                self.allocator.alloc(LOSS, KEPT)
            self.mark("START", STEP_MARK, self._marked)
            if not momenta:
                momenta = [self.make(layer, STEP, Role.OPTIMIZER_STATE) for layer in range(layers)]
            if not (fused and number):
                self.free(self.make(1, STEP, Role.TEMPORARY), STEP)
            self.mark("END", STEP_MARK, self._marked)
            self.mark("END", f"step {number}", steps)

    def size(self, layer: int) -> int:
        return (3 + layer) * MIB + 100 * layer

    def make(self, layer: int, stack: Frames, role: Role, times: float = 1) -> int:
        address = self.allocator.alloc(int(self.size(layer) * times), stack)
        assert address is not None
        self.truth[len(self.allocator.trace) - 1] = role
        return address

    def inside(self, layer: int, batch: int, role: Role, blocks: bool) -> list[int]:
        return (
            [self.make(layer + 9 + number, stack, role, batch) for number, stack in enumerate(INNER)] if blocks else []
        )

    def free_all(self, addresses: list[int], stack: Frames) -> None:
        for address in addresses:
            self.free(address, stack)

    def free(self, address: int, stack: Frames) -> None:
        self.allocator.request_free(address, stack)
        self.allocator.complete_free(address, stack)

    def mark(self, stage: str, name: str, wanted: bool) -> None:
        self.allocator.clock += 1
        entry = {"device": 0, "time_us": self.allocator.clock, "name": name, "stage": stage}
        self.marks += [entry] if wanted else []

    def snapshot(self) -> dict[str, Any]:
        return self.allocator.snapshot(external_annotations=self.marks)


def recorded(training: Training) -> Recording:
    """Return the training loop's snapshot as our reader reads it."""
    return read_snapshot(training.snapshot())


def read_snapshot(snapshot: dict[str, Any]) -> Recording:
    [part] = open_file(pickle.dumps(snapshot), "x.pickle", host="x")
    [recording] = part.read()
    return recording
