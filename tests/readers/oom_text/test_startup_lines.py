"""The ledger of a device from the start-up lines of inference engines, as public logs have them."""

from __future__ import annotations

from dataclasses import replace

from support.servers import DEMO

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.oom.failed_program import failed_program_in_logdir
from tb_memplugin.questions.oom.failure import sentences
from tb_memplugin.readers.oom_text import read_oom_text

GIB = 2**30

VLLM = """\
INFO 03-25 21:32:47 model_runner.py:1116] Loading model weights took 14.50 GB
INFO 03-25 21:32:48 worker.py:266] the current vLLM instance can use total_gpu_memory (24.00GiB) x \
gpu_memory_utilization (0.75) = 18.00GiB
INFO 03-25 21:32:48 worker.py:266] model weights take 15.00GiB; non_torch_memory takes 0.25GiB; PyTorch activation \
peak memory takes 0.75GiB; the rest of the memory reserved for KV Cache is 2.00GiB.
"""
SGLANG = """\
[2026-02-01 00:05:03 TP0] Load weight begin. avail mem=23.00 GB
[2026-02-01 00:05:03 TP0] Load weight end. elapsed=1.25 s, type=LlamaForCausalLM, avail mem=9.5 GB, mem usage=13.5 GB.
[2026-02-01 00:05:03 TP0] KV Cache is allocated. #tokens: 399740, K size: 3.00 GB, V size: 3.00 GB
[2026-02-01 00:05:03 TP0] Memory pool end. avail mem=3.50 GB
[2026-02-01 00:05:04 TP0] Capture cuda graph end. Time elapsed: 1.24 s. mem usage=0.25 GB. avail mem=3.25 GB.
"""
TPU = """\
INFO 07-08 [tpu_worker.py] Memory statistics | total_hbm_limit_gb=16.0GiB | total_hbm_limit_cap_gb=14.0GiB
                  | total_hbm_used_gb=9.0GiB   | total_hbm_avail_gb=5.0GiB
"""
CACHE = (
    "ValueError: To serve at least one request with the models's max seq len (4096), ({} GiB KV cache is needed, which \
is larger than the available KV cache memory (2.00 GiB)."
)
TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB \
of which 3.00 GiB is free."
)
ALLOCATION = "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 3.50G. That was not possible. \
There are 2.00G free."


def only(text: str) -> Recording:
    (recording,) = read_oom_text(text.encode())
    return recording


def ledger(text: str) -> dict[str, float]:
    failure = only(text).out_of_memory
    assert failure is not None
    return {share.holder: share.bytes / GIB for share in failure.ledger}


def test_the_budget_of_vllm() -> None:
    assert ledger(VLLM + CACHE.format("3.00")) == {
        "weights": 15, "KV cache": 2, "activations at the profiled peak": 0.75, "outside of the framework": 0.25,
        "left free by the utilization": 6,
    }  # fmt: skip


def test_the_utilization_that_has_room() -> None:
    """Use 24 GiB, of which 1 GiB more is 4.2 %: 0.75 and 0.042 is 0.80, rounded up."""
    assert any("--gpu-memory-utilization 0.80" in line for line in sentences(only(VLLM + CACHE.format("3.00"))))
    assert any("No utilization is enough" in line for line in sentences(only(VLLM + CACHE.format("20.00"))))


def test_the_pools_of_sglang() -> None:
    assert ledger(SGLANG + TORCH) == {"weights": 13.5, "KV cache": 6, "CUDA graphs": 0.25, "free": 3.25}
    assert any("--mem-fraction-static" in line for line in sentences(only(SGLANG + TORCH)))


def test_the_statistics_of_a_tpu() -> None:
    assert ledger(TPU + ALLOCATION) == {"weights": 9, "KV cache": 5, "left free by the utilization": 2}


def test_an_error_without_these_lines_and_one_of_the_host_have_none() -> None:
    assert ledger(TORCH) == {} and ledger(VLLM + "exit code 137") == {}


def test_the_ledger_is_in_the_answer() -> None:
    answer = explain(only(VLLM + CACHE.format("3.00")))
    assert answer["ledger"][0] == {"holder": "weights", "bytes": 15 * GIB, "share": 15 / 24}
    assert any("left free by the utilization" in line for line in lines(answer))


def test_the_ledger_is_on_the_page() -> None:
    error = only(VLLM + CACHE.format("3.00"))
    source = report_source([error], [error])
    found = failed_program_in_logdir(error, source.recordings, source.runs)
    assert found["ledger"] == explain(error)["ledger"]


def test_programs_of_the_run_are_in_a_ledger_that_lacks_them() -> None:
    """Take a program that needs more beside its arguments than was left free: that is no part of the rest."""
    programs = listing_of_path(str(DEMO / "v5e_train_step")).recordings
    error = replace(only(TPU + ALLOCATION), run=programs[0].run)
    held = {one["holder"]: one["bytes"] for one in explain(error, others=programs)["ledger"]}
    program = next(one for one in programs if one.is_main_memory)
    regions = program.regions
    beside = int(regions.size[(regions.kind & RegionKind.PARAMETER) == 0].sum())
    assert held["temporary memory of jit_train_step"] == beside > 2 * GIB
    assert "left free by the utilization" not in held
    source = report_source([error], [error, *programs])
    found = failed_program_in_logdir(error, source.recordings, source.runs)
    assert found["ledger"] == explain(error, others=programs)["ledger"]
    # vLLM's lines state what its programs take.
    stated = replace(only(VLLM + CACHE.format("3.00")), run=programs[0].run)
    assert explain(stated, others=programs)["ledger"] == explain(stated)["ledger"]
