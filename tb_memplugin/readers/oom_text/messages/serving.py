"""Messages of inference engines: memory that settings leave for the KV cache, and buffers of llama.cpp and MLX."""

from tb_memplugin.readers.oom_text.failure import Failure
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind, PrintedFigure

GIB, MIB = 2**30, 2**20


def _with_longest(failure: Failure, found: FoundMessage) -> Failure:
    """Estimate the longest length that fits where the text does not name it: a KV cache is in proportion to it."""
    said, length = failure.out_of_memory, found.figure("length")
    if "fits" not in found.values and length and said.asked and said.free is not None:
        found.values["estimate"] = PrintedFigure(length * said.free // said.asked)
    return failure


def _at_startup(failure: Failure, found: FoundMessage) -> Failure:
    """Read the free memory, whose unit is printed after the capacity, and the utilization that it allows."""
    said = failure.out_of_memory
    printed = found.name("capacity_number")
    if not said.capacity or not float(printed):
        return failure
    share = float(found.name("free_number")) / float(printed)
    found.values["fitting"] = f"{int(share * 100) / 100:.2f}"
    return failure.saying(free=round(share * said.capacity))


def with_engine_advice(failures: list[Failure], text: str) -> list[Failure]:
    """Add the advice of the inference engine whose files or words are in the text to errors of layers below it."""
    advice = next((advice for words, advice in ENGINES.items() if any(word in text for word in words)), ())
    if any(word in text for word in TRAINING):
        advice = ()
    unknown = () if any(word in text for word in OF_JAX) else UNKNOWN
    found = []
    for failure in failures:
        said = failure.out_of_memory
        below = advice if failure.tool in ("torch", "driver", "unlisted", "ggml") else ()
        more = below or (unknown if failure.tool not in OF_FRAMEWORKS and not said.host else ())
        found.append(failure.saying(advice=said.advice or more))
    return found


CACHE = "The KV cache gets what is left of the utilization after the weights and the activations of a profiled step"
RAISE = "Or raise --gpu-memory-utilization, if the device has that much free memory"

# Advice for an error of PyTorch in a text with the words of an engine, which does not train.
ENGINES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("vllm", "vLLM", "gpu_memory_utilization", "gpu_model_runner.py", "gpu_worker.py"): (
        "Lower --gpu-memory-utilization, which leaves more memory outside of the KV cache; or lower "
        "--max-num-batched-tokens, --max-num-seqs or the sizes of CUDA graphs (--enforce-eager has none).",
        "Or use quantized weights, or more devices (--tensor-parallel-size).",
    ),
    ("sglang", "SGLang", "mem_fraction_static", "Memory pool end."): (
        "Lower --mem-fraction-static, which leaves more memory outside of the KV cache; or lower "
        "--chunked-prefill-size or --cuda-graph-max-bs.",
        "Or use quantized weights, or more devices (--tp).",
    ),
    ("ComfyUI", "comfyui"): (
        "Start with --lowvram or --reserve-vram, use a smaller picture or fewer frames, a quantized (GGUF, fp8) model, "
        "or VAE Decode (Tiled).",
    ),
    ("ggml", "llama.cpp", "ollama"): (
        "Lower --ctx-size (num_ctx) or --batch-size, or keep fewer layers on the GPU (--n-gpu-layers, num_gpu).",
    ),
    ("TensorRT-LLM", "tensorrt_llm"): (
        "Build the engine with a smaller max_batch_size or max_num_tokens, or leave less of the free memory to the KV "
        "cache (kv_cache_free_gpu_mem_fraction); or use quantized weights, or more devices (--tp_size).",
    ),
}
UNKNOWN = (
    "Reduce the memory in use: a smaller batch or model, numbers of fewer bits, or more devices; in training, compute "
    "activations again in the backward pass (jax.checkpoint, torch.utils.checkpoint).",
)
# Layers of JAX, PyTorch, TensorFlow and ONNX Runtime, whose own advice is given where an error has none.
OF_FRAMEWORKS = ("torch", "onnxruntime", "tensor", "bfc", "xla", "remat", "tpu", "graph", "cubin")
OF_JAX = ("jax", "xla", "XLA", "RESOURCE_EXHAUSTED")

TRAINING = (".backward(", "rainer", "optimizer")  # a job of reinforcement learning has an engine too

MESSAGES = (
    MessageKind(
        r"{asked} KV cache is needed",
        "ValueError: To serve at least one request with the models's max seq len (1048576), (24.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (9.97 GiB). Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        {"memory": "KV cache of vLLM", "asked": 24 * GIB, "free": 10_705_205_985}, "vllm", "KV cache of vLLM",
        "https://github.com/vllm-project/vllm/issues/16118", before=r"max seq len \({length#}\)",
        facts=(r"available(?: KV cache memory)? \({free}", "maximum model length (?:is|≈) {fits#}"),
        finish=_with_longest,
        request=("One request of {length:,} tokens needs {asked} of KV cache, and vLLM has {free} for it.",
                 "One request of the model's length needs {asked} of KV cache, and vLLM has {free} for it."),
        reason=(f"{CACHE}: {{missing}} less than it needs.",),
        advice=("Set --max-model-len {fits:d}, the longest that fits.",
                "Set --max-model-len to about {estimate:d}: the cache is in proportion to the length.",
                f"{RAISE}; or use --kv-cache-dtype fp8, which halves a cache of 16 bits, or --tensor-parallel-size."),
    ),
    MessageKind(
        r"max seq len \({length#}\) is larger than the maximum number of tokens that can be stored in KV cache "
        r"\({fits#}\)",
        "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored "
        "in KV cache (93760). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
        {"memory": "KV cache of vLLM"}, "vllm", "KV cache of vLLM",
        request=("The model's length is {length:,} tokens, and the KV cache of vLLM has room for {fits:,}.",),
        reason=(f"{CACHE}.",),
        advice=("Set --max-model-len {fits:d}, the longest that fits.",
                f"{RAISE}; or use --kv-cache-dtype fp8, or --tensor-parallel-size."),
    ),
    MessageKind(
        r"alloc_req_slots runs out of memory",
        "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. "
        "self.req_to_token_pool.available_size()=1, num_reqs=2,", {"memory": "request slots of SGLang"}, "sglang",
        "request slots of SGLang", "https://github.com/sgl-project/sglang/issues/10408",
        facts=(r"available_size\(\)={slots#}", "num_reqs={requests#}"),
        request=("SGLang has {slots:,} of its slots for requests left, and {requests:,} are to start.",
                 "SGLang has no slots left for the requests that are to start."),
        reason=("These are entries of a table, not the memory of the GPU: its size is --max-running-requests.",),
        advice=("Set --max-running-requests to what is really sent at once; with speculative or pipelined decoding, "
                "leave room for the requests that are still running.",),
    ),
    MessageKind(
        r"Can't allocate new blocks\. No free blocks left",
        "[TensorRT-LLM][ERROR] Assertion failed: Can't allocate new blocks. No free blocks left. "
        "(kvCacheManager.cpp:257)", {"memory": "KV cache of TensorRT-LLM"}, "tensorrt-llm", "KV cache of TensorRT-LLM",
        request=("The KV cache of TensorRT-LLM has no free block for the next tokens.",),
        reason=("It gets a part of the memory that is free after the engine is loaded "
                "(kv_cache_free_gpu_mem_fraction).",),
        advice=("Raise kv_cache_free_gpu_mem_fraction, or lower the number of sequences (max_batch_size) or their "
                "length.",
                "Or schedule with GUARANTEED_NO_EVICT, which starts only what has room to its end.",),
    ),
    MessageKind(
        r"No available memory for the cache blocks",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.", {"memory": "KV cache of vLLM"}, "vllm", "KV cache of vLLM",
        request=("The weights and the activations of a profiled step leave nothing for the KV cache of vLLM.",),
        reason=("They take the whole share of the device that --gpu-memory-utilization allows.",),
        advice=("Raise --gpu-memory-utilization, if the device has that much free memory.",
                "Or lower what comes before the cache: --max-num-batched-tokens or --max-num-seqs for the activations; "
                "quantization or --tensor-parallel-size for the weights."),
    ),
    MessageKind(
        r"[Ff]ree memory on device(?: \S{1,20})? \((?P<free_number>\d{1,6}(?:\.\d{1,6})?)/(?=(?P<capacity_number>"
        r"\d{1,6}(?:\.\d{1,6})?)){capacity}\) (?:on startup|\.\.\.) is less than",
        "[multiproc_executor.py:492] ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than "
        "desired GPU memory utilization (0.95, 45.01 GiB). Decrease GPU memory utilization or reduce GPU memory used "
        "by other processes.",
        {"memory": "GPU", "asked": 48_329_119_498, "free": 33_758_442_946, "capacity": 50_873_887_621}, "vllm", "GPU",
        "https://github.com/vllm-project/vllm/issues/20305", finish=_at_startup,
        facts=(r"memory utilization \((?P<utilization>[\d.]{1,8}), {asked}\)",),
        request=("vLLM wants {utilization} of the device, {asked} of {capacity}, and {free} was free at start-up.",),
        reason=("No allocation failed: vLLM checks this before it loads the model. {missing} more must be free.",),
        advice=("Set --gpu-memory-utilization to less than {fitting}.",
                "Or end what else is on the device, such as an old run: nvidia-smi lists the processes."),
    ),
    MessageKind(
        r"out of memory occurred when warming up sampler with {requests#} dummy requests",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try "
        "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.", {"memory": "GPU"}, "vllm",
        "GPU", request=("The GPU ran out of memory as vLLM tried its sampler with {requests:,} requests.",),
        reason=("The logits of that many requests are outside of the memory that vLLM planned.",),
        advice=("Lower --max-num-seqs, of which {requests:d} is the value, or --gpu-memory-utilization.",), vague=True,
    ),
    MessageKind(
        r"Too large swap space\. {asked} out of the {capacity} total CPU memory",
        "ValueError: Too large swap space. 32.00 GiB out of the 31.00 GiB total CPU memory is allocated for the swap "
        "space.", {"memory": "host memory", "asked": 32 * GIB, "capacity": 31 * GIB}, "vllm", "host memory", host=True,
        advice=("Lower --swap-space, in GiB for each GPU.",),
    ),
    MessageKind(
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        {"memory": "KV cache of SGLang"}, "sglang", "KV cache of SGLang",
        "https://github.com/sgl-project/sglang/issues/4330", facts=(r"mem_fraction_static=(?P<fraction>[\d.]{1,6})",),
        request=("The weights leave nothing for the KV cache of SGLang within --mem-fraction-static {fraction}.",
                 "The weights leave nothing for the KV cache of SGLang within --mem-fraction-static."),
        reason=("This fraction holds weights and KV cache, unlike in engines where a lower one leaves more.",),
        advice=("Raise --mem-fraction-static; or use more devices (--tp) or quantized weights.",),
    ),
    MessageKind(
        r"Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=(?P<fraction>[\d.]{1,6})",
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.88.",
        {"memory": "KV cache of SGLang"}, "sglang", "KV cache of SGLang",
        "https://github.com/SemiAnalysisAI/InferenceX/issues/2128",
        request=("The weights leave nothing for the KV cache of SGLang within --mem-fraction-static {fraction}.",),
        reason=("This fraction holds weights and KV cache, unlike in engines where a lower one leaves more.",),
        advice=("Raise --mem-fraction-static; or use more devices (--tp) or quantized weights.",),
    ),
    MessageKind(
        r"Not enough memory to handle {tokens#} (?:prefill|total) tokens",
        "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
        "`--max-batch-prefill-tokens`", {"memory": "GPU"}, "tgi", "GPU",
        "https://github.com/huggingface/text-generation-inference/issues/755",
        request=("The GPU has no room for {tokens:,} tokens beside the weights of text-generation-inference.",),
        reason=("It tries a step of this size when it starts.",),
        advice=("Lower --max-batch-prefill-tokens, and --max-input-tokens, which is at most as large; or use "
                "quantized weights (--quantize) or more devices (--num-shard).",),
    ),
    MessageKind(
        r"total_hbm_used_gb={in_use} exceeds total_hbm_limit_cap_gb={capacity}",
        "ValueError: total_hbm_used_gb=30.1GiB exceeds total_hbm_limit_cap_gb=28.74GiB by 1.36GiB.",
        {"memory": "HBM", "in_use": 32_319_628_902, "capacity": 30_859_340_022}, "tpu_inference", "HBM",
        request=("The weights take {in_use}, more than the {capacity} that --gpu-memory-utilization allows.",),
        reason=("Nothing is left for the KV cache, and no allocation failed.",),
        advice=("Raise --gpu-memory-utilization, quantize the weights, or use more chips (--tensor-parallel-size).",),
    ),
    MessageKind(
        r"The memory capacity is unbalanced\. Some GPUs may be occupied by other processes",
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        {"memory": "GPU"}, "sglang", "GPU",
        request=("SGLang found less free memory on one GPU than on the others.",),
        reason=("No allocation failed: SGLang checks this before it loads the model.",),
        advice=("End what else is on that GPU, such as an old run: nvidia-smi lists the processes.",),
    ),
    MessageKind(
        r"(?P<stage>Prefill|Decode) out of memory\. Try to lower your batch size",
        "RuntimeError: Decode out of memory. Try to lower your batch size.\nTry to allocate 4 tokens.\nAvailable "
        "tokens: 0", {"memory": "KV cache of SGLang"}, "sglang", "KV cache of SGLang",
        facts=("Try to allocate {tokens#} tokens", "Avai?l?i?able tokens: {left#}"),
        request=("SGLang could not allocate {tokens:,} tokens of its KV cache; {left:,} are free.",
                 "The KV cache of SGLang has no room for more tokens."),
        reason=("The cache has a fixed number of tokens, from --mem-fraction-static at start-up. With --page-size, a "
                "request takes whole pages.",),
        advice=("Lower --max-running-requests or --chunked-prefill-size, or raise --mem-fraction-static.",),
    ),
    MessageKind(
        r"allocating {asked} on device (?P<device>\d{1,3}): (?:cuda|hip)Malloc failed: out of memory",
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 10240.00 MiB on device 0: cudaMalloc failed: out of "
        "memory", {"memory": "GPU 0", "asked": 10 * GIB}, "ggml", "GPU {device}",
        advice=("Lower --ctx-size or --batch-size, keep fewer layers on the GPU (--n-gpu-layers), or quantize the KV "
                "cache (--cache-type-k q8_0).",),
    ),
    MessageKind(
        r"failed to allocate {asked} of pinned memory: (?:out of memory|invalid argument)",
        "ggml_cuda_host_malloc: failed to allocate 349659.17 MiB of pinned memory: out of memory",
        {"memory": "host memory", "asked": 366_644_213_842}, "ggml", "host memory",
        "https://github.com/ollama/ollama/issues/8964", host=True,
        reason=("llama.cpp goes on with memory that is not pinned, which is slower.",),
        advice=("Give the machine more memory, use a smaller or quantized model, or keep the file mapped: do "
                "not set --no-mmap.",),
    ),
    MessageKind(
        r"failed to allocate (?P<device>[A-Z][A-Za-z]{1,10}\d{1,3}) buffer of size {asked#}",
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 10737418240",
        {"memory": "CUDA0", "asked": 10 * GIB}, "ggml", "{device}",
        advice=("Lower --ctx-size or --batch-size, or keep fewer layers on the GPU (--n-gpu-layers).",),
    ),
    MessageKind(
        r"(?:failed to allocate CPU buffer of size|cpu_buffer_type_alloc_buffer: failed to allocate buffer of size) "
        r"{asked#}", "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 437944320\n"
        "alloc_tensor_range: failed to allocate CPU buffer of size 437944320",
        {"memory": "host memory", "asked": 437_944_320}, "ggml", "host memory",
        "https://github.com/ollama/ollama/issues/12634", host=True,
        advice=("Use a smaller or quantized model, a smaller context (--ctx-size), or a machine with more memory.",),
    ),
    MessageKind(
        r"Failed to allocate memory for tensor\([^\n]{1,200}\) because no memory is available",
        "LMCache WARNING: Failed to allocate memory for tensor(torch.Size([2, 80, 256, 256]), torch.float16) because "
        "no memory is available", {"memory": "CPU cache of LMCache"}, "lmcache", "CPU cache of LMCache",
        "https://github.com/LMCache/LMCache/issues/745", host=True,
        request=("The pool of LMCache has no room for another block of the KV cache.",),
        reason=("The pool has a fixed size in the memory of the machine.",),
        advice=("Raise LMCACHE_MAX_LOCAL_CPU_SIZE, in GiB for each worker, or keep fewer requests at once.",),
    ),
    MessageKind(
        r"can't allocate {asked#} Bytes of memory on device", "can't allocate 2303168640 Bytes of memory on device",
        {"memory": "Intel GPU", "asked": 2_303_168_640}, "ggml", "Intel GPU",
        "https://github.com/ggml-org/llama.cpp/pull/28953",
        advice=("Lower --ctx-size or --batch-size, or keep fewer layers on the GPU (--n-gpu-layers).",),
    ),
    MessageKind(
        r"not enough space in the context's memory pool \(needed {asked#}, available {capacity#}\)",
        "ggml_new_object: not enough space in the context's memory pool (needed 16810528, available 11370496)",
        {"memory": "pool of a ggml context", "asked": 16_810_528, "capacity": 11_370_496}, "ggml",
        "pool of a ggml context", "https://github.com/leejet/stable-diffusion.cpp/issues/810", needs=True,
        request=("A graph needs {asked} for its description, and its pool has {capacity}.",),
        reason=("The pool has a fixed size: this is no shortage of memory.",),
        advice=("Use fewer frames or a smaller prompt, or a newer version: the size of the pool is in the program.",),
    ),
    MessageKind(
        r"Insufficient GPU memory for KVCache allocation",
        "KVCache allocation failed: Insufficient GPU memory for KVCache allocation.\nAvailable: 29353.63 MB, Required: "
        "131072.00 MB, Reserved: 512.00 MB.", {"memory": "GPU", "asked": 128 * GIB, "free": 30_779_511_931}, "vllm.rs",
        "GPU", "https://github.com/guoqingbao/xinfer/issues/195", facts=("Available: {free}", "Required: {asked}"),
        advice=("Lower --max-model-len or --max-num-seqs.",),
    ),
    MessageKind(
        r"Insufficient VRAM in split for model and cache",
        "RuntimeError: Insufficient VRAM in split for model and cache", {"memory": "GPU"}, "exllama", "GPU",
        "https://github.com/turboderp-org/exllamav3/issues/50", vague=True,
        request=("The model and its cache have no room on the GPUs that ExLlama splits them over.",),
        reason=("ExLlama loads layer by layer, and tries a step of the largest chunk on each GPU.",),
        advice=("Use a shorter cache or a quantized one (cache_mode), smaller chunks, or keep less in reserve.",),
    ),
    MessageKind(
        r"\[(?:metal::)?malloc(?:_or_wait)?\] Unable to allocate {asked#} bytes",
        "libc++abi: terminating due to uncaught exception of type std::runtime_error: [malloc_or_wait] Unable to "
        "allocate 9663676416 bytes.", {"memory": "Metal", "asked": 9 * GIB}, "metal", "Metal",
        "https://github.com/ml-explore/mlx/issues/63",
        reason=("Metal's memory is the machine's, which other programs use too.",),
        advice=("Use a smaller model, batch or context, and call mx.clear_cache() between sizes.",),
    ),
    MessageKind(
        r"Device memory allocation of size {asked#} failed",
        "ggml_vulkan: Device memory allocation of size 2147483648 failed.\nggml_vulkan: "
        "vk::Device::allocateMemory: ErrorOutOfDeviceMemory", {"memory": "GPU", "asked": 2 * GIB}, "ggml", "GPU",
    ),
    MessageKind(
        r"\[metal::malloc\] Resource limit \({limit#}\) exceeded",
        "RuntimeError: [metal::malloc] Resource limit (499000) exceeded.", {"memory": "Metal"}, "metal", "Metal",
        "https://github.com/ml-explore/mlx-lm/issues/1672",
        request=("MLX has {limit:,} buffers, as many as Metal allows.",),
        reason=("This is their number, not their size: each array and cache entry is one.",),
        advice=("Evaluate more often (mx.eval), so that arrays of a long graph are freed; call mx.clear_cache(); for a "
                "server, shorter generations or fewer at once.",),
    ),
    MessageKind(
        r"(?:kIOGPUCommandBufferCallbackErrorOutOfMemory|Command buffer execution failed: Insufficient Memory|"
        r"Insufficient Memory \(IOAF code 8\))",
        "libc++abi: [METAL] Command buffer execution failed: Insufficient Memory "
        "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", {"memory": "Metal"}, "metal", "Metal", vague=True,
        reason=("Metal refused the commands: the memory that it may wire is full, which it shares with the system.",),
        advice=("Use a smaller model or context, or raise the limit: sudo sysctl iogpu.wired_limit_mb.",),
    ),
    MessageKind(
        r"Attempting to allocate {asked#} bytes which is greater than the maximum allowed buffer size of {capacity#} "
        r"bytes", "RuntimeError: [metal::malloc] Attempting to allocate 34359738368 bytes which is greater than the "
        "maximum allowed buffer size of 22613000192 bytes.",
        {"memory": "one buffer of Metal", "asked": 32 * GIB, "capacity": 22_613_000_192}, "metal",
        "one buffer of Metal", reason=("This is the limit of one buffer, not of the memory.",),
        advice=("Split the array, or use a smaller batch or context.",),
    ),
    MessageKind(
        r"llama runner exited, you may not have enough available memory",
        "Error: llama runner exited, you may not have enough available memory to run this model",
        {"memory": "device memory"}, "ollama", "device memory", "https://github.com/ollama/ollama/issues/1566",
        vague=True,
        request=("Ollama's runner ended, which it takes for a lack of memory.",),
        reason=("Its log has the error: `journalctl -u ollama`, or ~/.ollama/logs/server.log.",),
        advice=("Use a smaller or quantized model, a smaller context (num_ctx), or fewer layers on the GPU.",),
    ),
    MessageKind(
        r"model requires more system memory \({asked}\) than is available \({free}\)",
        "Error: model requires more system memory (5.6 GiB) than is available (3.4 GiB)",
        {"memory": "host memory", "asked": 6_012_954_214, "free": 3_650_722_202}, "ollama", "host memory", host=True,
        advice=("Use a smaller or quantized model, or a smaller context (num_ctx).",),
    ),
)  # fmt: skip
