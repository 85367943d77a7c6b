"""Messages of the software of Tenstorrent, AWS Neuron, Gaudi and Ascend."""

from dataclasses import replace

from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure
from tb_memplugin.readers.oom_text.message import FIGURES, FoundMessage, MessageKind

COMPILE = OutOfMemoryPhase.COMPILE
SHARD = ("Shard the model over more cores (tensor parallelism), or use a smaller batch or sequence.",)
MIB = 2**20


def _over_banks(failure: Failure, found: FoundMessage) -> Failure:
    """Add up the banks: a buffer takes the same part of each."""
    banks, sizes = found.figure("banks") or 1, (found.figure(f"bank_{name}") for name in FIGURES[1:5])
    free, largest_free, capacity, in_use = (size if size is None else banks * size for size in sizes)
    failure = failure.saying(free=free, largest_free=largest_free, capacity=capacity, in_use=in_use)
    return replace(failure, used=in_use)


MESSAGES = (
    MessageKind(
        r"Not enough space to allocate {asked#} B (?P<kind>\w{1,20}) buffer(?: across {banks#} banks)?",
        "TT_FATAL: Out of Memory: Not enough space to allocate 3294625792 B DRAM buffer across 12 banks, where each "
        "bank needs to store 274686208 B, but bank size is 1071821792 B (allocated: 784847680 B, free: 286974112 B, "
        "largest free block: 216504544 B)",
        {"memory": "Tenstorrent DRAM", "asked": 3_294_625_792, "free": 12 * 286_974_112,
         "largest_free": 12 * 216_504_544, "capacity": 12 * 1_071_821_792, "in_use": 12 * 784_847_680},
        "tt", "Tenstorrent {kind}", "https://github.com/tenstorrent/tt-xla/issues/4685",
        facts=(r"bank size is (?:only )?{bank_capacity#} B", "allocated: {bank_in_use#} B", "free: {bank_free#} B",
               "largest free block: {bank_largest_free#} B"), finish=_over_banks,
        advice=("Use a smaller batch or sequence, bfloat8_b weights, or more chips; free buffers before large ones are "
                "allocated (ttnn.deallocate).",),
    ),
    MessageKind(
        r"Statically allocated \w{1,20} buffers(?: on core range \[(?P<cores>[^\]\n]{1,200})\])? grow to {asked#} B "
        r"which is beyond max L1 size of {capacity#} B",
        "TT_THROW: Statically allocated circular buffers on core range [(x=0,y=0) - (x=10,y=9)] grow to 2247168 B "
        "which is beyond max L1 size of 1572864 B", {"memory": "Tenstorrent L1", "asked": 2_247_168,
        "capacity": 1_572_864}, "tt", "Tenstorrent L1", phase=COMPILE, needs=True,
        request=("The circular buffers of a kernel need {asked} of L1, and a core has {capacity}.",),
        advice=("Use smaller blocks in the operation's program config, bfloat8_b, or shard over more cores.",),
    ),
    MessageKind(
        r"L1 buffer allocated at {start#} and static \w{1,20} buffer region ends at {end#}",
        "Statically allocated circular buffers in program 7 clash with L1 buffers on core range [(x=0,y=0) - "
        "(x=7,y=0)]. L1 buffer allocated at 506880 and static circular buffer region ends at 585536",
        {"memory": "Tenstorrent L1"}, "tt", "Tenstorrent L1",
        request=("The circular buffers of a kernel end at {end:,} in L1, where tensors begin at {start:,}.",),
        reason=("Both are in the L1 memory of the same cores.",),
        advice=("Move tensors to DRAM (ttnn.DRAM_MEMORY_CONFIG) before this operation, or use smaller blocks in its "
                "program config.",),
    ),
    MessageKind(
        r"Failed to allocate {asked} \(usage: (?P<wanted_by>[\w ]{1,40})\) on ND (?P<device>\d{1,3}):NC "
        r"(?P<core>\d{1,3})",
        "ERROR  TDRV:log_dev_mem  Failed to allocate 172.000MB (usage: tensors) on ND 0:NC 0, current utilization:\n"
        "\t* total: 15.855GB\n\t* tensors: 15.855GB", {"memory": "Neuron device 0 core 0", "asked": 172 * MIB,
        "in_use": 17_024_176_620, "wanted_by": "tensors"}, "neuron", "Neuron device {device} core {core}",
        "https://github.com/aws-neuron/aws-neuron-sdk/issues/1014", facts=("total: {in_use}",),
        advice=SHARD,
    ),
    MessageKind(
        r"Failed to alloc DEVICE memory: {asked#}",
        "ERROR  TDRV:dmem_alloc_internal  Failed to alloc DEVICE memory: 10485760",
        {"memory": "Neuron device", "asked": 10 * MIB}, "neuron", "Neuron device", unless="current utilization:",
        source="https://github.com/huggingface/optimum-neuron/pull/668",
        advice=SHARD,
    ),
    MessageKind(
        r"(?:Could not satisfy request for|buffer in MLA DRAM for (?P<wanted_by>\S{1,60}) of size) {asked#} bytes",
        "[TDRV:dma_mp_allocate_dma_buffer_from_tdram] Could not satisfy request for 2097152 bytes from channel\n"
        "[TDRV:dma_mp_create_mla_buf] TDRAM 0/0 has no free space", {"memory": "Neuron device", "asked": 2 * MIB},
        "neuron", "Neuron device", "https://github.com/aws-neuron/aws-neuron-sdk/issues/178", advice=SHARD,
    ),
    MessageKind(
        r"(?:status=4 message=\"?Allocation Failure|Failure: NRT_RESOURCE in nrt_)",
        'nrt_tensor_allocate status=4 message="Allocation Failure"',
        {"memory": "Neuron device"}, "neuron", "Neuron device", "https://github.com/vllm-project/vllm/issues/12443",
        vague=True, advice=SHARD,
    ),
    MessageKind(
        r"Total Accessed Bytes per partition by instruction: {asked#} Total SB Partition Size: {capacity#}",
        "[GCA035]  Instruction: I-21-0 with opcode: TensorTensor couldn't be allocated in SB\nTotal Accessed Bytes per "
        "partition by instruction: 198024\nTotal SB Partition Size: 196608",
        {"memory": "Neuron SBUF", "asked": 198_024, "capacity": 196_608}, "neuron", "Neuron SBUF",
        "https://github.com/aws-neuron/aws-neuron-sdk/issues/1060", phase=COMPILE, needs=True,
        request=("An instruction needs {asked} of SBUF in each partition, which has {capacity}.",),
        advice=("Use smaller tiles along the free dimension of the kernel.",),
    ),
    MessageKind(
        r"Allocated memory out of bound \{?(?P<wanted_by>[\w.-]{1,200})\}?@SB<",
        "[NLA001]  Unhandled exception with message: Allocated memory out of bound "
        "{b_tile_sub0}@SB<0,400000>(128x4000)",
        {"memory": "Neuron SBUF", "wanted_by": "b_tile_sub0"}, "neuron", "Neuron SBUF",
        "https://github.com/aws-neuron/aws-neuron-sdk/issues/1036", phase=COMPILE,
        request=("The tile {wanted_by} is outside of the SBUF of the core.",),
        reason=("SBUF is the on-chip memory of a NeuronCore, 24 MiB in 128 partitions.",),
        advice=("Use smaller tiles along the free dimension, or fewer at once.",),
    ),
    MessageKind(
        r"peak HBM usage of {asked} exceeds HBM limit of {capacity}",
        "[NCC_EOOM002] Maximum peak HBM usage of 18.12GB exceeds HBM limit of 16.00GB",
        {"memory": "HBM", "asked": 19_456_201_851, "capacity": 16 * 2**30}, "neuron", "HBM", phase=COMPILE, needs=True,
        advice=SHARD,
    ),
    MessageKind(
        r"NCC_EOOM\d{3}", "[NCC_EOOM001] The combined memory needed for the model tensors exceeds the high-bandwidth "
        "memory limit.", {"memory": "HBM"}, "neuron", "HBM", phase=COMPILE, vague=True,
        request=("The Neuron compiler refused the program: its tensors need more HBM than a core has.",),
        reason=("They are inputs, outputs, temporaries, and what SBUF had no room for.",),
        advice=SHARD,
    ),
    MessageKind(
        r"Allocation failed for size::{asked#}",
        "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::604241920 (576.25)MB",
        {"memory": "HPU", "asked": 604_241_920}, "gaudi", "HPU",
    ),
    MessageKind(
        r"Failed to allocate memory requested by \w{1,40} module",
        "Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by GE module.\n"
        "Possible Cause: Available memory is insufficient.\nTraceBack (most recent call last):\n"
        "Call rtMalloc fail, purpose: page caching, type = 2, size:3221291008, device_id:0[FUNC:Alloc]",
        {"memory": "NPU 0", "asked": 3_221_291_008}, "ascend", "NPU {device}",
        "https://github.com/PKU-YuanGroup/Helios/issues/62",
        facts=(r"size:{asked#}, device_id:", r"device_id:(?P<device>\d{1,3})"),
    ),
    MessageKind(
        r"Failed to allocate memory\.\s{0,20}Possible Cause: Available memory is insufficient",
        "EL0004: Failed to allocate memory.\n        Possible Cause: Available memory is insufficient.\n        "
        "Solution: Close applications not in use.", {"memory": "NPU"}, "ascend", "NPU",
        "https://github.com/hw-native-sys/PTOAS/pull/341", vague=True,
    ),
)  # fmt: skip
