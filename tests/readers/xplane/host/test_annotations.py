"""User annotations, distinguished from the runtime's own events."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from support.host_threads import Host, of_kind, spans
from support.profiles import profiles

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.xplane.host_calls import host_calls
from tb_memplugin.readers.xplane.planes import read_planes

CALL = "PjitFunction(f)"


def annotated(host: Host) -> list[tuple[str, int, int]]:
    return spans(host.read(), SpanKind.ANNOTATION)


def in_profile(path: Path) -> Counter[str]:
    """Return the annotations of a profile by name, also where its allocators log no events."""
    content = path.read_bytes()
    planes = read_planes(content, ReadBudget(content, str(path)))
    found = [host_calls(plane, []).spans for plane in planes if plane.name == "/host:CPU"]
    return Counter(name for spans in found for name, _, _ in of_kind(spans, SpanKind.ANNOTATION))


def test_what_is_around_calls_is_an_annotation() -> None:
    host = Host().add("epoch", 0, 100).add("train", 5, 90, step_num=1).add("$train.py:3 f", 8, 80).add("fwd", 9, 50)
    host.add(CALL, 10, 40).add("ParseArguments", 11, 12)
    assert annotated(host) == [("epoch", 0, 100), ("fwd", 9, 50)]
    assert spans(host.read(), SpanKind.STEP) == [("train 1", 5, 90)]
    assert spans(host.read(), SpanKind.EXECUTION) == [("f", 10, 40)]


def test_so_is_what_is_around_none_on_a_thread_of_python() -> None:
    host = Host().add(CALL, 0, 9).add("save", 10, 30).add("$np.py:1 f", 12, 20).add("to disk", 14, 18)
    host.add("$builtins len", 15, 16)
    assert annotated(host) == [("save", 10, 30), ("to disk", 14, 18)]
    assert ("load", 10, 20) in annotated(host.thread().add("$load.py:1 run", 0, 50).add("load", 10, 20))


def test_what_is_in_a_call_or_on_a_thread_of_the_runtime_is_the_runtime_s() -> None:
    host = Host().add(CALL, 0, 50).add("lower", 5, 40).add("lower", 60, 90).add("enqueue", 65, 70).add("dot", 100, 110)
    assert annotated(host) == [("dot", 100, 110)], "as lower is not one, enqueue is within the runtime"
    assert annotated(host.thread().add("dot", 5, 10).add("wait", 20, 30)) == []


def test_a_name_that_c_gives_is_one_around_a_call_alone() -> None:
    host = Host().add("loop::epoch", 0, 50).add(CALL, 10, 20).add("Buffer::Release", 60, 70)
    assert annotated(host) == [("loop::epoch", 0, 50)]


@pytest.mark.parametrize("number", ["_p", "_c", "run_id", "correlation_id"])
def test_what_tells_of_threads_and_programs_is_the_runtime_s(number: str) -> None:
    assert annotated(Host().add(CALL, 0, 9).add("wrapped_sine", 10, 30, **{number: 1})) == []


def test_what_jax_annotates_is_none_even_around_calls() -> None:
    host = Host().add("trace_to_jaxpr_dynamic", 0, 50).add("mine", 5, 30).add(CALL, 10, 20).add("shard_args", 60, 70)
    assert annotated(host) == []


def test_without_jax_nothing_is_told() -> None:
    host = Host().add("$train.py:3 f", 0, 90).add("train", 5, 80, step_num=1).add("MatMul", 10, 20)
    assert annotated(host) == []


def test_annotations_need_not_come_in_order_of_the_file() -> None:
    assert annotated(Host().add("in", 14, 18).add("out", 10, 30).add(CALL, 0, 9)) == [("out", 10, 30), ("in", 14, 18)]


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_the_real_profiles_hold_none(path: Path) -> None:
    """Expect none: by a manual check of their names, these profiles contain no user annotations."""
    assert in_profile(path) == {}


@pytest.mark.parametrize("python_tracer", [0, 1])
def test_a_profile_made_here_holds_what_was_put_into_it(tmp_path: Path, python_tracer: int) -> None:
    jax = pytest.importorskip("jax")
    step, mark = jax.jit(lambda x: x @ x), jax.profiler.TraceAnnotation
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python_tracer

    save = jax.profiler.annotate_function(time.sleep, name="save")

    def prefetch() -> None:
        with mark("prefetch"):
            jax.device_put([1.0, 2.0])

    with jax.profiler.trace(str(tmp_path), profiler_options=options):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                with mark("load batch", batch=number):
                    time.sleep(0.001)
                with mark("to device"):
                    x = jax.device_put(jax.numpy.ones((32, 32)))
                with mark("forward"), mark("attention"):
                    x = step(x)
                with mark("wait"):
                    x.block_until_ready()
                jax.grad(lambda x: (x**2).sum())(x)
                save(0.001)
        thread = threading.Thread(target=prefetch)
        thread.start()
        thread.join()
    (path,) = tmp_path.rglob("*.xplane.pb")
    each = dict.fromkeys(["load batch", "to device", "forward", "attention", "wait", "save"], 3)
    assert in_profile(path) == {**each, "prefetch": 1}
