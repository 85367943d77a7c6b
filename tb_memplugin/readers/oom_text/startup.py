"""A device's ledger from the start-up lines of inference engines: what takes its memory, and what their settings leave.

INFO 03-21 20:15:45 [worker.py:267] the current vLLM instance can use total_gpu_memory (79.19GiB) x
gpu_memory_utilization (0.90) = 71.27GiB
INFO 03-21 20:15:45 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB; PyTorch activation peak
memory takes 2.38GiB; the rest of the memory reserved for KV Cache is 56.18GiB.
"""

from math import ceil

from tb_memplugin.model.out_of_memory import MemoryShare
from tb_memplugin.readers.oom_text.failure import Failure, last_matches
from tb_memplugin.readers.oom_text.message import marks_of, squeezed, values_of
from tb_memplugin.readers.oom_text.normalize import NormalizedText

# A line that comes later has the newer figure. `before` and `after` are free memory.
LINES = (
    # vLLM
    r"total_gpu_memory \({total}\) x gpu_memory_utilization \((?P<utilization>[01]\.\d{1,4})\) = {budget}",
    r"[mM]odel weights take {weights}",
    r"non_torch_memory takes {other}",
    r"activation peak memory takes {activations}",
    r"rest of the memory reserved for KV Cache is {cache}",
    r"Loading model weights took {weights}",
    r"Model loading took {weights}",
    r"Available KV cache memory: {cache}",
    r"Estimated CUDA graph memory: {graphs}",
    r"Graph capturing finished in \d{1,6} secs, took {graphs}",
    r"Free memory on device(?: \w{1,8}:\d{1,3})? \((?P<free_number>[\d.]{1,8})/{total}\) on startup",
    r"desired GPU memory utilization (?:is )?\((?P<utilization>[01]\.\d{1,4}), {budget}\)",
    r"Actual usage is {weights} for weight, {activations} for peak activation, {other} for non-torch memory, and "
    r"{graphs} for CUDAGraph memory",
    # SGLang
    r"Load weight begin\. avail mem={before}",
    r"Load weight end\.[^\n]{0,300}?avail mem={after}",
    r"Load weight end\.[^\n]{0,300}?mem usage={weights}",
    r"KV Cache is allocated\.(?: #tokens: \d{1,9},)? K size: {keys}, V size: {cache_values}",
    r"KV Cache is allocated\.(?: #tokens: \d{1,9},)? KV size: {cache}",
    r"Memory pool end\. avail mem={after}",
    r"[cC]apture [\w ]{0,30}graph end\.[^\n]{0,100}?mem usage={graphs}",
    r"[cC]apture [\w ]{0,30}graph end\.[^\n]{0,100}?avail mem={after}",
    r"mem_fraction_static=(?P<fraction>0\.\d{1,4})",
    # tpu-inference; what it uses at start-up are weights
    r"total_hbm_limit_gb={total} \| total_hbm_limit_cap_gb={budget} \| total_hbm_used_gb={weights}",
    r"total_hbm_avail_gb={cache}",
)
PATTERNS = tuple(map(squeezed, LINES))
MIN_UNKNOWN = 0.01  # of the device; printed figures are rounded
HOLDERS = {
    "weights": "weights",
    "cache": "KV cache",
    "activations": "activations at the profiled peak",
    "graphs": "CUDA graphs",
    "other": "outside of the framework",
}


def with_ledger(failures: list[Failure], text: NormalizedText) -> list[Failure]:
    """Add the ledger of the device, if the text has start-up lines, to the failures of an engine's device."""
    found = _figures(text)
    if "weights" not in found:
        return failures
    return [failure if failure.out_of_memory.host else _with_ledger(failure, found) for failure in failures]


def _figures(text: NormalizedText) -> dict[str, int]:
    """Return the last figure of each kind, in bytes; of a utilization, in millionths."""
    placed: list[tuple[int, dict[str, int]]] = []
    for source, pattern in zip(LINES, PATTERNS, strict=True):
        if any(word.replace(" ", "") in text.squeezed for word in marks_of(source)):
            for match in last_matches(pattern, text.squeezed):
                figures = {
                    name: int(value) if isinstance(value, int) else round(float(value) * 1_000_000)
                    for name, value in values_of(source, match).items()
                }
                placed.append((match.start(), figures))
    found: dict[str, int] = {}
    for _, figures in sorted(placed, key=lambda one: one[0]):
        found |= figures
    if "before" in found and "after" in found:
        found.setdefault("weights", found["before"] - found["after"])
        found.setdefault("total", found["before"])
    if "keys" in found:
        found.setdefault("cache", found["keys"] + found.get("cache_values", 0))
    return found


def _with_ledger(failure: Failure, found: dict[str, int]) -> Failure:
    said = failure.out_of_memory
    shares = [MemoryShare(name, found[key]) for key, name in HOLDERS.items() if found.get(key, 0) > 0]
    total, budget = found.get("total"), found.get("budget")
    if "after" in found:
        shares.append(MemoryShare("free", found["after"]))
    elif total is not None and budget is not None and total > budget:
        shares.append(MemoryShare("left free by the utilization", total - budget))
    if total is not None and (rest := total - sum(share.bytes for share in shares)) > MIN_UNKNOWN * total:
        shares.append(MemoryShare("unknown", rest))
    advice = (*said.advice, *_fitting(failure, found))
    return failure.saying(ledger=tuple(shares), advice=advice)


def _fitting(failure: Failure, found: dict[str, int]) -> list[str]:
    """Return the utilization with which the KV cache would have had room for the request."""
    said, total, utilization = failure.out_of_memory, found.get("total"), found.get("utilization")
    asked, cache = said.asked or 0, found.get("cache")
    if not failure.memory.startswith("KV cache") or not total or not utilization or cache is None or asked <= cache:
        return []
    needed = utilization / 1_000_000 + (asked - cache) / total
    if needed > 1:
        return ["No utilization is enough: the device is too small for the weights and this cache together."]
    return [
        f"--gpu-memory-utilization {ceil(needed * 100) / 100:.2f} has room for it, if nothing else is on the device."
    ]
