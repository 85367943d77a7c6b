"""Messages from below and above a framework's allocator: drivers, their libraries, kernels, and other frameworks."""

import re
from dataclasses import replace
from math import prod

from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind

BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4,
    "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}  # fmt: skip


def _of_tensor(failure: Failure, found: FoundMessage) -> Failure:
    """Compute the size of the tensor that an operation of TensorFlow names."""
    shape, dtype = found.name("shape"), found.name("dtype")  # older versions name no type
    dimensions = [min(int(text), 2**40) for text in re.findall(r"\d{1,300}", shape)]
    asked = prod(dimensions) * BYTES[dtype] if dtype in BYTES and len(dimensions) < 16 else None
    wanted_by = f"a tensor of shape [{shape}]" + (f" and type {dtype}" if dtype else "")
    failure = failure.saying(asked=asked if asked is not None and asked < 2**63 else None, wanted_by=wanted_by)
    return replace(failure, memory=failure.memory.rstrip(",."))


def _in_hexadecimal(failure: Failure, found: FoundMessage) -> Failure:
    asked, limit = int(found.name("asked_hex"), 16), int(found.name("limit_hex"), 16)
    return replace(failure.saying(asked=asked, capacity=limit), used=asked)


def _of_arena(failure: Failure, found: FoundMessage) -> Failure:
    """Name the operation of ONNX Runtime; its arena has its free memory in one block."""
    wanted_by = " ".join(filter(None, (found.name("operation"), found.name("node"))))
    return failure.saying(largest_free=failure.out_of_memory.free, wanted_by=wanted_by)


GIB, MIB = 2**30, 2**20
COMPILE, LOAD = OutOfMemoryPhase.COMPILE, OutOfMemoryPhase.LOAD
SHARED = "GPU shared memory"
OUTSIDE = "This memory is outside of the framework's pool, which had taken almost all of the device."
BURN = (
    "Burn's runtime refuses a buffer above the limit of one buffer, which is not a full memory; versions before 2026 "
    "report a full GPU in the same words."
)
LEAVE_ROOM = (
    "Leave more outside of the pool: a smaller batch or cache, or a smaller part for the framework "
    "(PyTorch: torch.cuda.memory.set_per_process_memory_fraction; JAX: XLA_PYTHON_CLIENT_MEM_FRACTION; vLLM: "
    "--gpu-memory-utilization; SGLang: --mem-fraction-static).",
    "nvidia-smi (rocm-smi) lists what other processes hold on the device.",
)
BLOCKS = ("Use smaller blocks or fewer pipeline stages (num_stages, max_concurrent_steps), or a smaller dtype.",)
KERNEL = ("A kernel needs {asked} of shared memory, and the GPU has {capacity} for one block of threads.",)

DEVICES = ("GPU", "CUDA", "device", "Device", "VRAM", "video", "graphics")
# A hint begins with `if there is`, `in case of` or `when`, here with and without white space.
UNCONDITIONAL = r"(?<!f)(?<!f\s)(?<!fthereis)(?<!f\sthere\sis\s)(?<!hen)(?<!hen\s)"
# Words for a shortage, each with an example. They are whole, as they are searched for before patterns are matched.
SHORTAGES = {
    "permutohedral_lattice/src/DeviceMemoryAllocator.h:68] GPU memory allocation failed (might be due to insufficient "
    "memory)": [f"{of} memory alloc(?:ation)? (?:failed|error)" for of in DEVICES],
    "RuntimeError: unable to allocate GPU memory": [
        f"{verb} alloc(?:ate)? {of} memory" for of in DEVICES for verb in ("ailed to", "ould not", "nable to")
    ],
    "Alloc Device Memory Failed! Program Terminated.": [
        *(f"lloc(?:ate)? {words}" for words in ("GPU memory failed", "device memory failed", "Device Memory Failed")),
        *("OutOfGPUMemoryError", "E_OUTOFMEMORY", "8007000E", "显存不足", "内存不足"),
    ],
    "Error: insufficient GPU memory": [
        *(f"{UNCONDITIONAL}[a-zA-Z]nsufficient {of} memory" for of in DEVICES),
        f"{UNCONDITIONAL}[a-zA-Z]nsufficient VRAM",
    ],
    "There is not enough VRAM": [
        *(f"{UNCONDITIONAL}[a-zA-Z]ot enough {of} memory" for of in DEVICES),
        *(f"{UNCONDITIONAL}[a-zA-Z]{words}" for words in ("ot enough VRAM", "ut of VRAM")),
    ],
}
ATTEMPTS = "|".join(
    f"{words} "
    for verb in ("ailed to", "ould not", "nable to", "annot")
    for words in (f"{verb} allocate", f"{verb} alloc")
)

MESSAGES = (
    MessageKind(
        r"failed to allocate \S{1,20} \({asked#} bytes\) from device: (?:RESOURCE_EXHAUSTED: : )?"
        r"CUDA_ERROR_OUT_OF_MEMORY(?![^\n]{0,40}retry)",
        "2024-01-01 00:00:00.000001: I external/xla/cuda_driver.cc:1101] failed to allocate 3.72G (4000000000 bytes) "
        "from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        {"memory": "device memory", "asked": 4_000_000_000}, "driver",
    ),
    MessageKind(
        r"cuMemAllocAsync failed to allocate {asked#} bytes",
        "gpu_async_1 cuMemAllocAsync failed to allocate 1225195446464 bytes: RESOURCE_EXHAUSTED: : "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free memory/Total memory: "
        "22635544576/85095874560\nStats: Limit:                    0\nInUse:                     61982909300\n",
        {"memory": "gpu_async_1", "asked": 1_225_195_446_464, "free": 22_635_544_576, "capacity": 85_095_874_560,
         "in_use": 61_982_909_300},
        "driver", "{allocator}", "https://github.com/NovaSky-AI/SkyRL/issues/624",
        before=r"(?P<allocator>(?<!\S)\S{1,60})\s{1,8}\Z",
        facts=("Free memory/Total memory: {free#}/{capacity#}", "InUse: {in_use#}", "Limit: {capacity#}"),
    ),
    MessageKind(
        r"OOM when allocating tensor (?:with shape|of shape) ?\[(?P<shape>[\d,]{0,300})\] and type "
        rf"(?P<dtype>{'|'.join(sorted(BYTES, reverse=True))}|[\w:]{{1,30}})"
        r"(?: on (?P<device>\S{1,200}))?(?: by allocator (?P<allocator>\S{1,100}))?",
        "ResourceExhaustedError: OOM when allocating tensor with shape[256,1024,1024] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        {"memory": "GPU_0_bfc", "asked": GIB}, "tensor", "{allocator}", finish=_of_tensor,
    ),
    MessageKind(
        r"OOM when allocating tensor (?:with shape|of shape) ?\[(?P<shape>[\d,]{0,300})\](?! and type)",
        "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[32,64,128,128]\n"
        "  [[Node: training/Adam/gradients/conv2d_16", {"memory": "GPU"}, "tensor", "GPU",
        "https://github.com/dfaker/df/issues/7", finish=_of_tensor,
    ),
    MessageKind(
        r"Available memory of {free#} is smaller than requested bytes of {asked#}",
        "running Expand node. Name:'wide' Status Message: bfc_arena.cc:378 AllocateRawInternal(size_t, bool) "
        "Available memory of 50331392 is smaller than requested bytes of 67108864",
        {"memory": "ONNX Runtime arena", "asked": 64 * MIB, "free": 50_331_392, "wanted_by": "Expand wide"},
        "onnxruntime", "ONNX Runtime arena", finish=_of_arena,
        before=r"running (?P<operation>\w{1,60}) node\. Name:'(?P<node>[^'\n]{0,200})'[^\n]{0,1000}\Z",
    ),
    MessageKind(
        r"Failed to allocate memory for requested buffer of size {asked#}",
        "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:368 void* onnxruntime::BFCArena::AllocateRawInternal"
        "(size_t, bool) Failed to allocate memory for requested buffer of size 2830172160",
        {"memory": "ONNX Runtime arena", "asked": 2_830_172_160}, "onnxruntime", "ONNX Runtime arena", finish=_of_arena,
        before=r"running (?P<operation>\w{1,60}) node\. Name:'(?P<node>[^'\n]{0,200})'[^\n]{0,1000}\Z",
    ),
    MessageKind(
        r"Failed to load in-memory CUBIN[^:]{0,60}: CUDA_ERROR_OUT_OF_MEMORY",
        "E1122 00:10:47.231964  290312 pjrt_stream_executor_client.cc:3077] Execution of replica 0 failed: "
        "RESOURCE_EXHAUSTED: Failed to load in-memory CUBIN (compiled for a different GPU?).: "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory", {"memory": "GPU"}, "cubin", "GPU",
        "https://github.com/iit-DLSLab/mpx/issues/11", phase=LOAD,
        request=("The driver could not load the code of a program: the GPU ran out of memory.",),
        reason=(OUTSIDE,), advice=LEAVE_ROOM,
    ),
    MessageKind(
        r"ran out of memory trying to instantiate graph",
        "INTERNAL: CUDA error: Underlying backend ran out of memory trying to instantiate graph with 12 nodes and 0 "
        "conditionals (total of 24 alive graphs in the process).", {"memory": "GPU"}, "graph", "GPU", phase=LOAD,
        facts=("with {nodes#} nodes", r"total of {graphs#} alive graphs"),
        request=("The driver could not instantiate a CUDA graph of {nodes:,} nodes; {graphs:,} others are alive.",
                 "The driver could not instantiate a CUDA graph: the GPU ran out of memory."),
        reason=(OUTSIDE,),
        advice=("Run without CUDA graphs: XLA_FLAGS=--xla_gpu_enable_command_buffer= (empty).", *LEAVE_ROOM),
    ),
    MessageKind(
        r"(?:instantiate|capture|Capture|launch) (?:of )?(?:a )?(?:CUDA|cuda) ?[gG]raph(?: failed)?:[^\n]{0,80}?"
        r"(?:OUT_OF_MEMORY|out of memory)",
        "INTERNAL: Failed to instantiate CUDA graph: CUDA_ERROR_OUT_OF_MEMORY: out of memory", {"memory": "GPU"},
        "graph", "GPU", phase=LOAD, vague=True,
        request=("The GPU ran out of memory at a CUDA graph.",), reason=(OUTSIDE,),
        advice=("Capture fewer or smaller graphs, or none (vLLM: --enforce-eager; SGLang: --cuda-graph-max-bs, "
                "--disable-cuda-graph; XLA_FLAGS=--xla_gpu_enable_command_buffer=).", *LEAVE_ROOM),
    ),
    MessageKind(
        r"Failed to (?:CUDA|HIP) (?:calloc|malloc)(?: async)? {asked#} bytes",
        "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n\n"
        "ng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes",
        {"memory": "GPU 3", "asked": 6 * MIB}, "nccl", "GPU {device}", "https://github.com/NVIDIA/nccl/issues/1235",
        before=r"\[(?P<device>\d{1,4})\] [^\n]{0,200}NCCL WARN \Z",
        request=("An allocation of {asked} of NCCL's own buffers failed.",), reason=(OUTSIDE,),
        advice=("Use fewer channels or smaller buffers: NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE.", *LEAVE_ROOM),
    ),
    MessageKind(
        r"Failed to CUDA host alloc {asked#} bytes", "NCCL WARN Failed to CUDA host alloc 4194304 bytes",
        {"memory": "host memory", "asked": 4 * MIB}, "nccl", "host memory", host=True,
    ),
    MessageKind(
        r"(?P<library>CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|HIPSPARSE)_STATUS_ALLOC_FAILED",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        {"memory": "GPU"}, "library", "GPU", "https://github.com/zai-org/CogVideo/issues/665", vague=True,
        request=("{library} could not allocate its own memory, such as the workspace of its handle.",),
        reason=(OUTSIDE,), advice=LEAVE_ROOM,
    ),
    MessageKind(
        r"(?:CUFFT_ALLOC_FAILED|cuFFT failed to allocate|rocblas_status_memory_error|miopenStatusAllocFailed|"
        r"[tT]he resource allocation failed)",
        "transformer_engine/common/gemm/cublaslt_gemm.cu:408 in function cublas_gemm: cuBLAS Error: the resource "
        "allocation failed", {"memory": "GPU"}, "library", "GPU", vague=True,
        request=("A library could not allocate its own memory.",), reason=(OUTSIDE,), advice=LEAVE_ROOM,
    ),
    MessageKind(
        r"out of resource: shared memory,? ?Required: {asked#},? ?Hardware limit(?:ation)?: {capacity#}",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163842, Hardware limitation: "
        "101376. reducing the block size or `num_stages` may help", {"memory": SHARED, "asked": 163_842,
        "capacity": 101_376}, "kernel", SHARED, "https://github.com/alipay/PainlessInferenceAcceleration/issues/35",
        phase=COMPILE, needs=True, request=KERNEL, advice=BLOCKS,
    ),
    MessageKind(
        r"OutOfResources: out of resource: shared memory",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory,", {"memory": SHARED}, "kernel", SHARED,
        "https://github.com/pytorch/helion/issues/470", phase=COMPILE, vague=True,
        request=("A kernel needs more shared memory than the GPU has for one block of threads.",), advice=BLOCKS,
    ),
    MessageKind(
        r"out of resource: tensor memory, Required: {columns#}, Hardware limit(?:ation)?: {limit#}",
        "triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 640, Hardware limit: 512.",
        {"memory": "tensor memory"}, "kernel", "tensor memory", phase=COMPILE,
        request=("A kernel needs {columns:,} columns of tensor memory, and the GPU has {limit:,}.",),
        reason=("Tensor memory holds the accumulators of a kernel's matrix products.",), advice=BLOCKS,
    ),
    MessageKind(
        r"Shared memory size limit exceeded: requested {asked#}, available:? {capacity#}",
        "Shared memory size limit exceeded: requested 262144, available: 232448",
        {"memory": SHARED, "asked": 262_144, "capacity": 232_448}, "kernel", SHARED, phase=COMPILE, needs=True,
        request=KERNEL, advice=BLOCKS,
    ),
    MessageKind(
        r"exceeds available shared memory: smem_bytes={asked#} > (?:max_smem_bytes=)?{capacity#}",
        "ValueError: Mosaic GPU kernel exceeds available shared memory: smem_bytes=327712 > max_smem_bytes=232448",
        {"memory": SHARED, "asked": 327_712, "capacity": 232_448}, "kernel", SHARED, phase=COMPILE, needs=True,
        request=KERNEL, advice=BLOCKS,
    ),
    MessageKind(
        r"uses too much shared data \(0x(?P<asked_hex>[0-9a-f]{1,10}) bytes, 0x(?P<limit_hex>[0-9a-f]{1,10}) max\)",
        "ptxas error   : Entry function 'main' uses too much shared data (0x1a000 bytes, 0xc000 max)",
        {"memory": SHARED, "asked": 106_496, "capacity": 49_152}, "kernel", SHARED, phase=COMPILE, needs=True,
        finish=_in_hexadecimal, request=KERNEL, advice=BLOCKS,
    ),
    MessageKind(
        r"(?:UR_RESULT|ZE_RESULT|PI|PI_RESULT)_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)",
        "memcpy failed: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        {"memory": "Intel GPU"}, "level_zero", "Intel GPU", vague=True,
        request=("The driver of an Intel GPU refused a request; the text has no sizes.",),
        reason=("Often this is no shortage: the driver also reports it for one allocation above its limit of 4 GiB, "
                "and where the device was lost.",),
        advice=("Compare the device's free memory (xpu-smi) with the largest tensor. For single allocations above 4 "
                "GiB, set UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1.",),
    ),
    MessageKind(
        r"MEM_OBJECT_ALLOCATION_FAILURE",
        "pyopencl._cl.MemoryError: clEnqueueWriteBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE", {"memory": "GPU"},
        "driver", "GPU", "https://github.com/tinygrad/tinygrad/issues/722", vague=True,
        request=("OpenCL could not allocate a buffer on the device.",),
    ),
    MessageKind(
        r"Cannot allocate {asked#} bytes: no memory is available",
        "MemoryError: Cannot allocate 122341986304 bytes: no memory is available.",
        {"memory": "GPU", "asked": 122_341_986_304}, "tinygrad", "GPU",
        "https://github.com/tinygrad/tinygrad/issues/11442",
    ),
    MessageKind(
        r"TotalUsedMemStatistics : {in_use#} plus[^\n]{0,80}? plus alloc size : {asked#} is more than total mem size : "
        r"{capacity#}", "AddMemBlockAndMemBufByEagerFree] TotalUsedMemStatistics : 29356337664 plus "
        "TotalUsedByEventMemStatistics : 0 and plus alloc size : 301990400 is more than total mem size : 29464985600.",
        {"memory": "MindSpore pool", "asked": 301_990_400, "in_use": 29_356_337_664, "capacity": 29_464_985_600},
        "mindspore", "MindSpore pool", "https://github.com/candle-org/MindAct/issues/1761",
        advice=("Use a smaller batch or length, recomputation (Cell.recompute), or raise max_device_memory "
                "(set_context, runtime.set_memory), if the device has more.",),
    ),
    MessageKind(
        r"enforce allocating <= available failed, {asked#} > {free#}",
        "paddle.fluid.core.EnforceNotMet: enforce allocating <= available failed, 10513462067 > 1369702144",
        {"memory": "GPU", "asked": 10_513_462_067, "free": 1_369_702_144}, "paddle", "GPU",
        "https://github.com/PaddlePaddle/Paddle/issues/8992",
    ),
    MessageKind(
        r"无法在GPU (?P<device>\d{1,3})上分配{asked}内存.已分配{in_use}内存.可用内存仅为{free}",
        "GPU 0上出现内存不足错误。无法在GPU 0上分配50.000000MB内存\uff0c"
        "已分配11.999512 GB内存\uff0c可用内存仅为0.000000B。",
        {"memory": "GPU 0", "asked": 50 * MIB, "in_use": 12_884_377_902, "free": 0}, "paddle", "GPU {device}",
        "https://github.com/jm12138/CPM-Generate-Paddle/issues/7",
    ),
    MessageKind(
        r"Excessive allocation of local memory on the device",
        "Native API failed. Native API returns: -996\nExcessive allocation of local memory on the device",
        {"memory": SHARED}, "kernel", SHARED, "https://github.com/oneapi-src/unified-runtime/issues/1322", vague=True,
        request=("A kernel needs more local memory than the GPU has for one work-group.",), advice=BLOCKS,
    ),
    MessageKind(
        r"StandardGpuResources: alloc fail[^\n]{0,200}?size {asked#} bytes",
        "Error: 'err == cudaSuccess' failed: StandardGpuResources: alloc fail type TemporaryMemoryOverflow dev 0 space "
        "Device stream 0x55 size 3145728000 bytes (cudaMalloc error out of memory [2])",
        {"memory": "GPU", "asked": 3_145_728_000}, "faiss", "GPU",
        "https://github.com/facebookresearch/foundpose/issues/4",
        advice=("Add or search fewer vectors at once, use float16 or a quantized index, or reserve less temporary "
                "memory (StandardGpuResources.setTempMemory).",),
    ),
    MessageKind(
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES", "rocdevice.cpp:3583: Aborting with error : "
        "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. Available Free mem "
        ": 24 MB", {"memory": "AMD GPU", "free": 24 * MIB}, "driver", "AMD GPU", facts=("Available Free mem : {free}",),
        request=("The driver of an AMD GPU could not allocate its own memory; {free} is free.",
                 "The driver of an AMD GPU could not allocate its own memory."), reason=(OUTSIDE,), advice=LEAVE_ROOM,
    ),
    MessageKind(
        r"Out of memory allocating {asked#} bytes \(allocated so far: {in_use#} bytes(?:, limit set to: {capacity#} "
        r"bytes)?\)", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so "
        "far: 1,073,741,824 bytes).", {"memory": "CuPy pool", "asked": 8 * GIB, "in_use": GIB}, "cupy", "CuPy pool",
    ),
    MessageKind(
        r"out of memory to allocate {asked#} bytes \(total {in_use#} bytes\)",
        "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 747110400 bytes (total 5722942464 bytes)",
        {"memory": "CuPy pool", "asked": 747_110_400, "in_use": 5_722_942_464}, "cupy", "CuPy pool",
        "https://github.com/Bartzi/see/issues/23",
    ),
    MessageKind(
        r"(?:RMM failure|std::bad_alloc: out_of_memory)[^\n]{0,400}?(?:failed to allocate {asked}|out of memory|"
        r"Maximum pool size exceeded(?! \(failed))",
        "MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/rmm/mr/device/pool_memory_resource.hpp:257: "
        "Maximum pool size exceeded (failed to allocate 1.50 GiB)", {"memory": "RMM pool", "asked": 1536 * MIB},
        "rmm", "RMM pool",
    ),
    MessageKind(
        r"Cannot allocate {asked} memory on GPU (?P<device>\d{1,3}), {in_use} memory has been allocated and available "
        r"memory is only {free}", "ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 1.500000GB "
        "memory on GPU 0, 15.000000GB memory has been allocated and available memory is only 500.000000MB.",
        {"memory": "GPU 0", "asked": 1536 * MIB, "free": 500 * MIB, "in_use": 15 * GIB}, "paddle", "GPU {device}",
    ),
    MessageKind(
        r"Cannot allocate {asked} memory on GPU (?P<device>\d{1,3}), available memory is only {free}",
        "Out of memory error on GPU 0. Cannot allocate 1.531250GB memory on GPU 0, available memory is only "
        "416.625000MB.", {"memory": "GPU 0", "asked": 1568 * MIB, "free": 436_862_976}, "paddle", "GPU {device}",
        "https://github.com/PaddlePaddle/Paddle/issues/26892",
    ),
    MessageKind(
        r"amdgpu: Failed to allocate a buffer:",
        "MESA: error: amdgpu: Failed to allocate a buffer:\nMESA: error: amdgpu:    size      : 2147483648 bytes",
        {"memory": "GPU", "asked": 2 * GIB}, "driver", "GPU", "https://github.com/tinygrad/tinygrad/issues/15485",
        facts=("size : {asked#} bytes",),
    ),
    MessageKind(
        r"Out of GPU memory(?: trying to allocate {asked})?", "ERROR: Out of GPU memory trying to allocate 1.000 GiB\n"
        "Effective GPU memory usage: 99.71% (7.976 GiB/8.000 GiB)",
        {"memory": "GPU", "asked": GIB, "in_use": 8_564_164_788, "capacity": 8 * GIB}, "julia", "GPU",
        facts=(r"GPU memory usage: [\d.]{1,8}% \({in_use}/{capacity}\)",),
    ),
    MessageKind(
        r"Could not allocate tensor with {asked#} bytes\. There is not enough GPU video memory",
        "RuntimeError: Could not allocate tensor with 268435456 bytes. There is not enough GPU video memory available!",
        {"memory": "DirectML", "asked": 256 * MIB}, "directml", "DirectML",
    ),
    MessageKind(
        r"Requested amount of GPU memory \({asked#} bytes\) could not be allocated",
        "[E] [TRT] Requested amount of GPU memory (1342177280 bytes) could not be allocated. There may not be enough "
        "free memory for allocation to succeed.", {"memory": "GPU", "asked": 1280 * MIB}, "tensorrt", "GPU",
    ),
    MessageKind(
        r"OutOfMemory \(Requested size was {asked#} bytes", "[TRT] Error Code 2: OutOfMemory (Requested size was "
        "1342177280 bytes.)", {"memory": "GPU", "asked": 1280 * MIB}, "tensorrt", "GPU",
    ),
    MessageKind(
        r"Exceeded max size of memory (?:object )?allocation: [rR]equ(?:ested|ired) {asked#} bytes,? but max alloc "
        r"size (?:supported by device )?is {capacity#} bytes",
        "[GPU] Exceeded max size of memory object allocation: requested 28666553344 bytes, but max alloc size "
        "supported by device is 4294959104 bytes.", {"memory": "one buffer of the Intel GPU", "asked": 28_666_553_344,
        "capacity": 4_294_959_104}, "openvino", "one buffer of the Intel GPU",
        "https://github.com/openvinotoolkit/openvino/issues/36386",
        reason=("This is the limit of one allocation, not of the memory.",),
        advice=("Use a smaller batch or prompt, or set ov::intel_gpu::hint::enable_large_allocations "
                "(GPU_ENABLE_LARGE_ALLOCATIONS).",),
    ),
    MessageKind(
        r"Memory allocation error on worker \d{1,6}:", "XGBoostError: device_vector.cu:23: Memory allocation error on "
        "worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free memory: 48GB\n- Requested memory: "
        "64GB", {"memory": "GPU", "asked": 64 * GIB, "free": 48 * GIB}, "xgboost", "GPU",
        "https://github.com/dmlc/xgboost/issues/11684", facts=("Free memory: {free}", "Requested memory: {asked}"),
        advice=("Use QuantileDMatrix or external memory, fewer bins (max_bin), or more GPUs.",),
    ),
    MessageKind(
        r"unable to allocate cuda memory of length {asked#} bytes", "cuda_copy_md.c:516  UCX  ERROR   unable to "
        "allocate cuda memory of length 536870912 bytes", {"memory": "GPU", "asked": 512 * MIB}, "ucx", "GPU",
        "https://github.com/NVIDIA/cudf/issues/22234", reason=(OUTSIDE,), advice=LEAVE_ROOM,
    ),
    MessageKind(
        r"XPU API return wrong value\[-705\]",
        "OSError: (External) XPU API return wrong value[-705], no enough memory", {"memory": "Kunlun XPU"}, "paddle",
        "Kunlun XPU", "https://github.com/PaddlePaddle/Paddle/issues/56395", vague=True,
    ),
    MessageKind(
        r"Error out of memory at line \d{1,6} in file",
        "Error out of memory at line 380 in file /home/user/bitsandbytes/csrc/pythonInterface.c", {"memory": "GPU"},
        "driver", "GPU", "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/726", vague=True,
    ),
    MessageKind(
        r"BufferTooBig ?[({{] ?(?:size: )?{asked#}", "thread 'main' panicked at cubecl-runtime: called "
        "`Result::unwrap()` on an `Err` value: BufferTooBig { size: 9663676416, backtrace: disabled }",
        {"memory": "GPU", "asked": 9 * GIB}, "cubecl", "GPU",
        reason=(BURN,),
    ),
    MessageKind(
        r"Buffer size {asked#} is greater than the maximum buffer size \({capacity#}\)",
        "wgpu error: Validation Error: Buffer size 536870912 is greater than the maximum buffer size (268435456)",
        {"memory": "one buffer of wgpu", "asked": 512 * MIB, "capacity": 256 * MIB}, "wgpu", "one buffer of wgpu",
        reason=("This is the limit of one buffer, not of the memory.",),
        advice=("Ask for the adapter's own limits when the device is requested, or split the tensor.",),
    ),
    MessageKind(
        r"Buffer binding \d{1,4} range {asked#} exceeds `?max_[a-z_*]{1,40}_size`? limit {capacity#}",
        "In Device::create_bind_group\n    Buffer binding 0 range 536870912 exceeds `max_*_buffer_binding_size` limit "
        "134217728", {"memory": "one binding of wgpu", "asked": 512 * MIB, "capacity": 128 * MIB}, "wgpu",
        "one binding of wgpu", "https://github.com/Gadersd/llama2-burn/issues/3",
        reason=("This is the limit of one binding, not of the memory.",),
        advice=("Ask for the adapter's own limits when the device is requested, or split the tensor.",),
    ),
    MessageKind(
        r"(?:No pool handles allocation of size|No memory pool big enough to reserve|can't allocate buffer of size:) "
        r"{asked#}",
        "thread 'DSD-4-0' panicked at cubecl-wgpu/src/compute/server.rs:347:35:\nfailed to reserve 3595479680 bytes of "
        "device memory: can't allocate buffer of size: 3595479680", {"memory": "GPU", "asked": 3_595_479_680},
        "cubecl", "GPU", "https://github.com/ArthurBrussee/brush/issues/551", reason=(BURN,),
    ),
    MessageKind(
        r"(?:wgpu error: Out of Memory|In Device::create_buffer.{0,80}?Not enough memory left)",
        "wgpu error: Validation Error\n\nCaused by:\n  In Device::create_buffer\n    Not enough memory left.",
        {"memory": "GPU"}, "wgpu", "GPU", "https://github.com/tracel-ai/cubecl/issues/90", vague=True,
    ),
    MessageKind(
        r"allocat(?:ing|e) memory for (?P<wanted_by>\w{1,60}) with size {asked#} and alignment \d{1,4}(?:, but only "
        r"{free#} bytes available| in AlignedAllocator)",
        "RuntimeError: Buffer overflow when allocating memory for batch_prefill_tmp_v with size 540016640 and "
        "alignment 16, but only 402653184 bytes available in AlignedAllocator. Increase the workspace buffer size.",
        {"memory": "workspace of FlashInfer", "asked": 540_016_640, "free": 384 * MIB}, "flashinfer",
        "workspace of FlashInfer", reason=("This is a buffer of a fixed size, not the memory of the GPU.",),
        advice=("Give the wrapper a larger workspace buffer (vLLM: VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE; SGLang: "
                "SGLANG_FLASHINFER_WORKSPACE_SIZE), or split prefills into smaller chunks.",),
    ),
    MessageKind(
        r"Error Code 2: OutOfMemory", "[E] Error[2]: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: "
        "OutOfMemory (no further information)", {"memory": "GPU"}, "tensorrt", "GPU", vague=True,
        source="https://github.com/aws/amazon-sagemaker-examples/issues/4655",
    ),
    MessageKind(
        r"(?:(?:cudaHostAlloc|cudaMallocHost|cudaHostRegister|hipHostMalloc)(?:\W| failed)[^\n]{0,100}?"
        r"|pin_memory\([^\n]{0,400}?CUDA (?:driver )?error: )(?:out of memory|OUT_OF_MEMORY|cudaErrorMemoryAllocation)",
        "    return data.pin_memory(device)\nRuntimeError: CUDA error: out of memory", {"memory": "host memory"},
        "host", "host memory", host=True, vague=True,
        request=("The driver could not pin host memory.",),
        reason=("Pinned memory is host memory that stays in place: it is limited by the free host memory, by "
                "ulimit -l and by the container.",),
        advice=("Use pin_memory=False, or fewer workers and batches that are prefetched; for offloading, keep a "
                "smaller part in pinned memory.",),
    ),
    MessageKind(
        r"Ran out of GPU memory when allocating {asked#} bytes",
        "ResourceExhaustedError: Ran out of GPU memory when allocating 329294592 bytes for \n\t [[Node: cross_entropy",
        {"memory": "GPU", "asked": 329_294_592}, "tensor", "GPU",
        "https://github.com/tensorflow/tensor2tensor/issues/401",
    ),
    MessageKind(
        r"(?:SplitAndRetry|Gpu\w{0,30}|RetryO|Retry)OOM\b",
        "Caused by: com.nvidia.spark.rapids.jni.GpuSplitAndRetryOOM: GPU OutOfMemory: could not split inputs and retry",
        {"memory": "GPU"}, "rapids", "GPU", "https://github.com/NVIDIA/cudf-spark/issues/11584", vague=True,
        advice=("Use smaller batches (spark.rapids.sql.batchSizeBytes), fewer tasks at once on a GPU "
                "(spark.rapids.sql.concurrentGpuTasks), or more partitions.",),
    ),
    MessageKind(
        r"NVML_SUCCESS == r INTERNAL ASSERT FAILED at [^\n]{0,200}?CUDACachingAllocator\.cpp",
        'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp":995, please '
        "report a bug to PyTorch.", {"memory": "GPU"}, "torch", "GPU",
        "https://github.com/pytorch/pytorch/issues/185240", vague=True,
        request=("PyTorch ran out of memory on a Jetson, and failed again as it wrote the message about it.",),
        reason=("NVML, which it asks for the processes on the device, does not exist there.",),
        advice=("Reduce the memory in use: the GPU shares it with the system, so close other programs, too.",),
    ),
    MessageKind(
        r"(?:NvMapMem(?:Alloc|Handle)\w{0,30}: [^\n]{0,20}?error 12|cudaAllocMapped\(\) failed to allocate memory)",
        "NvMapMemAllocInternalTagged: 1075072515 error 12\nNvMapMemHandleAlloc: error 0", {"memory": "GPU"}, "driver",
        "GPU", "https://github.com/0xShug0/audio.cpp/issues/12", vague=True,
        reason=("On a Jetson, the GPU shares the memory of the system, which is full or fragmented.",),
        advice=("Close other programs, use a smaller model or batch, or start the machine again, which ends the "
                "fragmentation.",),
    ),
    MessageKind(
        r"Array buffer allocation failed", "RangeError: Array buffer allocation failed", {"memory": "host memory"},
        "browser", "host memory", "https://github.com/huggingface/transformers.js/issues/952", host=True, vague=True,
        request=("The browser could not allocate an array.",),
        reason=("A page has some gigabytes at most, fewer on a phone, and an array needs one block of them.",),
        advice=("Use a smaller or quantized model (dtype: 'q4'), or load its weights in parts.",),
    ),
    # Of a tool that is not listed, with a size in bytes or with its unit. Fewer bytes may be a number of other things.
    MessageKind(
        rf"(?:{ATTEMPTS})(?:[\w ]{{1,40}}of size:? )?(?=[\d,]{{5}}){{asked#}}(?!\s{{0,4}}[\d.,]{{0,4}}\d)",
        "Can't create a session. Failed to allocate a buffer of size 2079238052.",
        {"memory": "device memory", "asked": 2_079_238_052}, "unlisted", "device memory",
        "https://github.com/huggingface/transformers.js/issues/1056", vague=True,
    ),
    MessageKind(
        rf"(?:{ATTEMPTS})(?:[\w ]{{1,40}}of size:? )?{{asked}}(?![A-Za-z])",
        "Error: could not allocate 2.50 GiB for the cache", {"memory": "device memory", "asked": 2560 * MIB},
        "unlisted", "device memory", vague=True, exact=True,
    ),
    MessageKind(
        r"(?:CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|OutOfDeviceMemory"
        r"|VK_ERROR_OUT_OF_DEVICE_MEMORY)", 'DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")',
        {"memory": "GPU"}, "driver", "GPU", vague=True,
    ),
    MessageKind(
        r"(?:CUDA|Cuda|cuda|HIP|hip)[^\n]{0,120}?(?:[:'(,] ?|with error (?:\d{1,4} )?)out of memory",
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        {"memory": "GPU"}, "driver", "GPU", vague=True,
    ),
    # Without the words "out of memory".
    *(
        MessageKind(rf"(?:{'|'.join(words)})(?! ?\?)", example, {"memory": "GPU"}, "unlisted", "GPU", vague=True)
        for example, words in SHORTAGES.items()
    ),
    # Of a tool that is not listed. A line about an attempt that ran out of memory is not an error.
    MessageKind(
        r"(?:[eE]rror|ERROR|[fF]ailed|FATAL|[fF]atal|what\(\)|panicked)[^\n]{0,80}?[^n\s] ?"
        r"(?:out of memory|Out of memory|Out of Memory)",
        "terminate called after throwing an instance of 'vk::SystemError'\n  what():  vkAllocateMemory: out of memory",
        {"memory": "device memory"}, "unlisted", "device memory", vague=True,
    ),
)  # fmt: skip
