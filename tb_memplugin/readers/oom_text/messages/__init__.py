"""Out-of-memory messages: a declaration for each kind, in one module per framework and message family."""

from tb_memplugin.readers.oom_text.messages import accelerators, bfc, gpu, host, serving, torch, tpu, xla_gpu

# Of those without figures, the first that is found counts.
MESSAGES = tuple(
    message for family in (tpu, xla_gpu, bfc, serving, accelerators, torch, gpu, host) for message in family.MESSAGES
)
