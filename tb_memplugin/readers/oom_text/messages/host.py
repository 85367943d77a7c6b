"""Host memory: failed requests of frameworks, shared memory, and processes killed by the system."""

from dataclasses import replace

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.readers.oom_text.failure import Buffer, Failure, named_buffers
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind


def _of_array(failure: Failure, found: FoundMessage) -> Failure:
    return failure.saying(wanted_by=f"an array of shape {found.name('shape')} and data type {found.name('dtype')}")


def _of_process(failure: Failure, found: FoundMessage) -> Failure:
    """Add the process that the kernel killed, with the limit of its control group where the text has one."""
    used = (found.figure("anonymous") or 0) * 1024
    rows = named_buffers([Buffer(used, name=f"process {found.name('pid')} ({found.name('process')})")])
    limit = found.figure("limit")
    return replace(failure.saying(in_use=used, capacity=limit * 1024 if limit else None), rows=rows, used=used)


KILLED = Caveat(CaveatCode.KILLED, "The system killed the process before it could report its memory use")
MIB, GIB = 2**20, 2**30

# Exit code 137 is 128 + SIGKILL; Python reports -9. Patterns with a literal start are fast.
KILLS = (
    (r"xit(?:ed|s|ing)?(?:[ _-](?:[Ww]ith|[Ss]tatus|[Cc]ode|[Vv]alue)){0,4}\s{0,2}[:=(]?\s{0,2}137\b", "exit code 137"),
    (r"exitcode\s{0,4}[:=]\s{0,4}-9\b", "  exitcode  : -9 (pid: 4711)"),
    (r"(?<![^\n])Killed(?![^\n])", "step 12 loss 3.1\nKilled\n"),
    (r"line \d{1,6}: {1,8}\d{1,10} Killed\b", "./run.sh: line 19: 867080 Killed                  python train.py"),
    (r"\[\d{1,3}\] {1,6}\d{1,10} killed\b", "MVM coalescing... [1]    51630 killed     ./vgg16.test"),
    (r"died with <Signals\.SIGKILL: 9>", "died with <Signals.SIGKILL: 9>."),
    (r"[sS]ignal 9 \(SIGKILL\)", "terminated by signal 9 (SIGKILL)"),
    (r"killed by signal: Killed", "RuntimeError: DataLoader worker (pid 1327) is killed by signal: Killed."),
    (r"OOMKilled", "    Last State:  Terminated\n      Reason:    OOMKilled"),
    (
        r"may have exceeded K8s pod memory limits",
        "Worker exits with an exit code None. The worker may have exceeded K8s pod memory limits.",
    ),
    (r"OS_REASON_JETSAM", "last exit reason = OS_REASON_JETSAM"),
    (r"node was low on resource: memory", "The node was low on resource: memory. Threshold quantity: 100Mi"),
    (r"oom[-_ ]kill", "slurmstepd: error: Detected 1 oom_kill event in StepId=52.batch."),
    (r"(?<!SIGKILL by )OOM[-_ ]kill", "Some of your processes may have been OOM killed"),
    (r"(?m)^srun: error: [^\n]{1,200}: Out Of Memory$", "srun: error: gpu-7: task 0: Out Of Memory"),
    (r"Memory cgroup out of memory(?!: Kill)", "Memory cgroup out of memory"),
    (
        r"[1-9]\d{0,5} Workers \(tasks / actors\) killed due to memory pressure \(OOM\)",
        "(raylet) node_manager.cc:3250: 5 Workers (tasks / actors) killed due to memory pressure (OOM)",
    ),
    (
        r"systemd-oomd(?:\[\d{1,9}\])?: Killed \S{1,300} due to memory",
        "systemd-oomd[812]: Killed /user.slice/app.scope due to memory pressure for /user.slice being 59.53% > 50.00%",
    ),
)
# Words for an allocation that the system refused, without its size.
REFUSALS = (
    (r"std::bad_alloc(?!:\s{1,4}(?:o|CUDA|RMM|cuda|hip))", "terminate called after throwing an instance of "
     "'std::bad_alloc'"),
    (r"(?m)^(?:[\w.]{1,60}: )?MemoryError(?:$|:(?!\s{1,4}(?:std::bad_alloc:|Unable to alloc|Cannot\s)))",
     "MemoryError"),
    (r"[^>\s]: Cannot allocate memory", "rdma_context.cpp:257] Failed to register memory 0x7f7186000000: Cannot "
     "allocate memory [12]"),
    (r"\[Errno 12\] Cannot allocate memory", "OSError: [Errno 12] Cannot allocate memory"),
    (r"The paging file is too small for this operation", "OSError: [WinError 1455] The paging file is too small for "
     "this operation to complete."),
)  # fmt: skip

SHARED_MEMORY = (
    "Enlarge /dev/shm: docker run --shm-size=16g or --ipc=host; in Kubernetes, an emptyDir with medium: Memory there.",
    "Or use fewer workers (num_workers), or torch.multiprocessing.set_sharing_strategy('file_system').",
)

MESSAGES = (
    MessageKind(
        r"Out of memory allocating {asked#} bytes(?! ?\(allocated)",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 281474976710656 bytes.",
        {"memory": "host memory", "asked": 2**48}, "host", "host memory", host=True,
    ),
    MessageKind(
        r"Out of host memory while trying to allocate {asked}",
        "Out of host memory while trying to allocate 70.00GiB. Please set the environment variable "
        "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than the default 64 GB.",
        {"memory": "host memory", "asked": 70 * GIB}, "host", "host memory", host=True,
        advice=("XLA pins this memory. Raise its limit: XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB.",),
    ),
    MessageKind(
        r"(?:can't allocate memory|not enough memory): you tried to allocate {asked#} bytes",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 80000000000 bytes. Error code 12 (Cannot allocate memory)",
        {"memory": "host memory", "asked": 80_000_000_000}, "host", "host memory", host=True,
    ),
    MessageKind(
        r"ggml_aligned_malloc: insufficient memory \(attempted to allocate {asked}\)",
        "ggml_aligned_malloc: insufficient memory (attempted to allocate 1024.00 MB)",
        {"memory": "host memory", "asked": GIB}, "ggml", "host memory",
        "https://github.com/ggml-org/whisper.cpp/pull/4055", host=True,
    ),
    MessageKind(
        r"(?:UR_RESULT|ZE_RESULT|PI|PI_RESULT)_ERROR_OUT_OF_HOST_MEMORY",
        "Native API failed. Native API returns: -6 (PI_ERROR_OUT_OF_HOST_MEMORY)", {"memory": "host memory"},
        "level_zero", "host memory", "https://github.com/ggml-org/llama.cpp/pull/9476", host=True, vague=True,
        request=("The driver of an Intel GPU could not allocate host memory.",),
    ),
    MessageKind(
        r"could not allocate pinned host memory of size: {asked#}",
        "W external/xla/xla/stream_executor/device_host_allocator.h:46] could not allocate pinned host memory of size: "
        "17179869184", {"memory": "host memory", "asked": 16 * GIB}, "host", "host memory", host=True,
    ),
    MessageKind(
        r"failed to alloc(?:ate)? {asked#} bytes (?:on|of) host(?: memory)?",
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:893] failed to alloc 17179869184 bytes on host: "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        {"memory": "host memory", "asked": 16 * GIB}, "host", "host memory", host=True,
    ),
    MessageKind(
        r"Unable to allocate {asked} for an array with shape (?P<shape>\([\d,\s]{0,200}\)) and data type "
        r"(?P<dtype>\S{1,40})",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape "
        "(100000, 100000) and data type float64",
        {"memory": "host memory", "asked": 79_993_765_888,
         "wanted_by": "an array of shape (100000, 100000) and data type float64"},
        "host", "host memory", host=True, finish=_of_array,
    ),
    MessageKind(
        r"Unable to allocate array with shape (?P<shape>\([\d,\s]{0,200}\)) and data(?: type (?P<dtype>\S{1,40}))?",
        "MemoryError: Unable to allocate array with shape (20000, 128, 128) and data type float64",
        {"memory": "host memory", "wanted_by": "an array of shape (20000, 128, 128) and data type float64"},
        "host", "host memory", "https://github.com/vbelz/Speech-enhancement/issues/31", host=True, finish=_of_array,
    ),
    MessageKind(
        r"Failed to allocate CPU Memory", "mxnet.base.MXNetError: storage.h:79: Failed to allocate CPU Memory",
        {"memory": "host memory"}, "host", "host memory", "https://github.com/apache/mxnet/issues/15711", host=True,
    ),
    MessageKind(
        r"[Oo]ut of memory: Kill(?:ed)? process (?P<pid>\d{1,10}) \((?P<process>[^)\n]{1,60})\)"
        r"[^\n]{0,200}?anon-rss:{anonymous#}kB",
        "[1234.5] Out of memory: Killed process 4711 (python3) total-vm:90000000kB, anon-rss:62914560kB, "
        "file-rss:0kB, shmem-rss:0kB, UID:1000",
        {"memory": "host memory", "in_use": 60 * GIB}, "host", "host memory", host=True,
        before=r"usage \d{1,15}kB, limit {limit#}kB", finish=_of_process,
    ),
    MessageKind(
        r"Task was killed due to the node running low on memory",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node "
        "(IP: 10.0.62.231, ID: e5d9) where the task (task ID: 4353, name=allocate_memory, pid=11362, memory "
        "used=1.25GB) was running was 27.71GB / 28.80GB (0.962273), which exceeds the memory usage threshold of 0.95.",
        {"memory": "host memory", "in_use": 29_753_385_943, "capacity": 30_923_764_531}, "host", "host memory",
        host=True, facts=(r"name=(?P<task>[^,\s]{1,200}), pid=\d{1,9}, memory used={own}",
                          r"was running was {in_use} / {capacity} \("),
        reason=("Ray's memory monitor killed a task, {task}, which used {own}: the node's memory is over the "
                "threshold, whoever holds it.",
                "Ray's memory monitor killed a task: the node's memory is over the threshold, whoever holds it."),
        advice=("Run fewer tasks at once on a node (num_cpus, or memory= of ray.remote), or use nodes with more "
                "memory. The message goes on with the processes that use most.",),
    ),
    MessageKind(
        r"java\.lang\.OutOfMemoryError(?:: (?P<area>Java heap space|GC overhead limit exceeded|Metaspace|Direct buffer "
        r"memory))?", 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', {"memory": "JVM heap"},
        "jvm", "JVM heap", host=True, vague=True,
        request=("A Java process reached its memory limit: {area}.", "A Java process reached its memory limit."),
        reason=("This is the limit of that process, not of the machine or of an accelerator.",),
        advice=("Raise -Xmx, or for Spark spark.driver.memory and spark.executor.memory; or use more partitions.",),
    ),
    MessageKind(
        r"DataLoader worker \(pid(?:\(s\))? (?P<pid>[\d,\s]{1,100})\) (?:is|was) killed by signal: Bus error",
        "RuntimeError: DataLoader worker (pid 1327) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit.",
        {"memory": "shared memory"}, "host", "shared memory", host=True,
        request=("A worker of the DataLoader ran out of shared memory (/dev/shm), through which it passes batches.",),
        reason=("The accelerator's memory is not involved, and other host memory may be free.",), advice=SHARED_MEMORY,
    ),
    MessageKind(
        r"insufficient shared memory \(shm\)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        {"memory": "shared memory"}, "host", "shared memory", host=True, vague=True,
        request=("A process ran out of shared memory (/dev/shm).",),
        reason=("The accelerator's memory is not involved, and other host memory may be free.",), advice=SHARED_MEMORY,
    ),
    MessageKind(
        r"(?:shared memory segment \S{1,100} \(size {asked#}\)|unable to mmap {mapped#} bytes from "
        r"file <[^>\n]{1,200}>: Cannot allocate memory)",
        "NCCL WARN Error while creating shared memory segment nccl-shm-recv-c43b846667d22574-1-1-0 (size 9637888)",
        {"memory": "shared memory", "asked": 9_637_888}, "host", "shared memory", host=True,
        reason=("The accelerator's memory is not involved, and other host memory may be free.",), advice=SHARED_MEMORY,
    ),
    *(MessageKind(pattern, example, {"memory": "host memory"}, "host", "host memory", host=True, exact=True,
              caveats=(KILLED,)) for pattern, example in KILLS),
    *(MessageKind(pattern, example, {"memory": "host memory"}, "host", "host memory", host=True, exact=True,
                  request=("An allocation of host memory failed; the text has no size of it.",),
                  reason=("Host memory is the memory of the machine, not of the accelerator.",))
      for pattern, example in REFUSALS),
)  # fmt: skip
