"""torch.compile in a trace: what its programs allocate, and where that comes from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from support.traced_memory import NOT_OF_OLD, live_bytes  # noqa: E402

from tb_memplugin.torch_fit import compiled  # noqa: E402
from tb_memplugin.torch_fit.process_group import Rank  # noqa: E402
from tb_memplugin.torch_fit.storages import WORKSPACE_FRAME  # noqa: E402
from tb_memplugin.torch_fit.tracing import TracedProgram, trace  # noqa: E402

pytestmark = [NOT_OF_OLD, pytest.mark.filterwarnings("ignore")]
COUNT = 1 << 18  # elements of a vector
SIZE = 4 * COUNT


def chain(x: Any) -> Any:
    for _ in range(4):
        x = torch.sin(x)
        x = torch.exp(x)
    return x


def vector() -> Any:
    return torch.randn(COUNT, device="cuda", requires_grad=True)


def traced(run: Callable[[], Any], rank: Rank | None = None) -> TracedProgram:
    torch._dynamo.reset()
    with trace("h100", *([rank] if rank else [])) as found:
        run()
    return found


def large(found: TracedProgram) -> list[int]:
    return [event.size for event in found.log.events if event.size >= SIZE]


def test_a_chain_of_elementwise_functions_keeps_its_input_only() -> None:
    def run(function: Callable[[Any], Any]) -> None:
        x = vector()
        function(x).backward(torch.ones_like(x))

    eager = traced(lambda: run(chain))
    found = traced(lambda: run(torch.compile(chain)))
    assert max(live_bytes(eager.log)) >= 9 * SIZE  # each function keeps its input or its output
    assert large(found) == [SIZE] * 4  # the input, the output, its gradient and that of the input
    assert compiled.COMPILED in found.assumptions.found


def test_a_buffer_has_the_line_and_the_operator_that_it_is_the_result_of() -> None:
    def run() -> None:
        with torch.no_grad():
            torch.compile(lambda x: torch.mm(x, x).relu())(torch.randn(512, 512, device="cuda"))

    log = traced(run).log
    frames, stacks = [*log.frames], {number: stack for stack, number in log.stacks.items()}
    event = [one for one in log.events if one.size == SIZE][1]
    stack = [frames[number] for number in stacks[event.stack]]
    assert stack[0][0] == "at::_ops::mm::call"
    assert stack[1][1] == __file__
    assert "call" not in {name for name, _, _ in stack}  # the function of Inductor's program


def test_code_without_a_file_keeps_its_lines() -> None:
    log = traced(lambda: exec(compile("import torch\ntorch.ones(9, device='cuda')", "<cell 3>", "exec"), {})).log
    assert ("<module>", "<cell 3>", 2) in log.frames


def test_a_program_is_on_the_gpu_and_may_read_values() -> None:
    def function(x: Any) -> Any:
        assert x.device.type == "cuda" and x.is_cuda
        if x.sum().item() > 0:  # breaks the graph
            raise AssertionError("an unknown value counts as 0")
        more = torch.arange(COUNT).cuda() + torch.ones(COUNT, device="cuda") + torch.tensor(2.0, device=x.device)
        return x.to("cuda") * more

    found = traced(lambda: torch.compile(function)(vector()).sum().backward())
    assert any("counts as 0" in text for text in found.assumptions.found)


def test_autocast_around_compiled_code_is_compiled() -> None:
    def run() -> None:
        layers = torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)
        model = torch.compile(torch.nn.Sequential(*layers))
        model.to("cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(torch.randn(64, 512, device="cuda")).float().square().mean()
        loss.backward()

    found = traced(run).assumptions.found
    assert compiled.COMPILED in found and not any("compiler failed" in text for text in found)


def test_a_compiled_optimizer_has_its_state() -> None:
    def run() -> None:
        parameter = vector()
        optimizer = torch.optim.Adam([parameter])
        parameter.grad = torch.ones_like(parameter)
        torch.compile(optimizer.step)()
        live.append(len(optimizer.state))

    live: list[int] = []
    assert len(large(traced(run))) == 4  # the parameter, its gradient and two moments
    assert live == [1]


@pytest.mark.parametrize("options", [{"fullgraph": True}, {"dynamic": True}, {"mode": "max-autotune"}])
def test_options(options: dict[str, Any]) -> None:
    def run() -> None:
        function = torch.compile(chain, **options)
        for _ in range(2):
            x = vector()
            function(x).backward(torch.ones_like(x))

    found = traced(run)
    assert max(live_bytes(found.log)) < 5 * SIZE
    assert (compiled.NO_GRAPHS in found.assumptions.found) == ("mode" in options)


def test_the_backend_that_compiles_nothing_needs_what_eager_code_needs() -> None:
    def run(function: Callable[[Any], Any]) -> None:
        x = vector()
        function(x).backward(torch.ones_like(x))

    eager, found = traced(lambda: run(chain)), traced(lambda: run(torch.compile(chain, backend="eager")))
    assert large(found) == large(eager)


def test_a_graph_that_is_not_compiled_is_traced_by_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import graph

    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(graph.GraphLowering, "run", fail)
    x: list[Any] = []

    def run() -> None:
        x.append(vector())
        torch.compile(chain)(x[0]).backward(torch.ones_like(x[0]))

    found = traced(run)
    assert any("InductorError" in text or "ZeroDivisionError" in text for text in found.assumptions.found)
    assert len(large(found)) > 8
    assert x[0].grad.shape == x[0].shape


def test_the_compiler_of_another_pytorch_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx

    monkeypatch.delattr(compile_fx, "_recursive_joint_graph_passes")
    x: list[Any] = []
    found = traced(lambda: x.append(torch.compile(chain)(vector())))
    assert compiled.NOT_COMPILED in found.assumptions.found
    assert len(large(found)) == 9


def test_nothing_is_left_of_the_changes() -> None:
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._subclasses.fake_tensor import FakeTensorMode

    before = torch.compile, compile_fx, FakeTensorMode.__torch_dispatch__, config.shape_padding, dict(os.environ)
    kernel = torch.ops.aten.nll_loss.default.py_kernels
    kept = dict(kernel)
    traced(lambda: torch.compile(chain)(vector()))
    after = torch.compile, compile_fx, FakeTensorMode.__torch_dispatch__, config.shape_padding, dict(os.environ)
    assert after == before
    assert kernel == kept
    with torch.no_grad():
        assert torch.compile(chain, backend="eager")(torch.ones(4)).device.type == "cpu"


def test_blocks_that_are_sharded_and_compiled() -> None:
    from torch.distributed.fsdp import fully_shard

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(512, 512, bias=False)

        def forward(self, x: Any) -> Any:
            return chain(self.linear(x))

    def run(compile: bool) -> None:
        torch.distributed.init_process_group()
        model = torch.nn.Sequential(Block(), Block()).to("cuda")
        for block in model:
            if compile:
                block.compile()
            fully_shard(block)
        fully_shard(model)
        x = torch.randn(512, 512, device="cuda")
        model(x).sum().backward()

    eager, found = traced(lambda: run(False), Rank(0, 4)), traced(lambda: run(True), Rank(0, 4))
    assert max(live_bytes(found.log, WORKSPACE_FRAME)) < 0.8 * max(live_bytes(eager.log, WORKSPACE_FRAME))
