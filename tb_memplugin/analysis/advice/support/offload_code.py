"""Code that keeps an optimizer's state on the host while another program computes the gradients."""

from __future__ import annotations

from collections.abc import Sequence

CODE = """\
def shardings(tree, kind):
    return jax.tree.map(lambda x: x.sharding.with_memory_kind(kind), tree)

on_device, on_host = shardings(opt_state, 'device'), shardings(opt_state, 'pinned_host')
opt_state = jax.device_put(opt_state, on_host){comment}
gradients = jax.jit(jax.value_and_grad(loss_fn))

@functools.partial(jax.jit, donate_argnums=(0, 1))
def update(params, opt_state, grads):
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state

def {function}(params, opt_state, batch):
    loss, grads = jax.block_until_ready(gradients(params, batch))  # its temporary memory is free after this line
    params, opt_state = update(params, jax.device_put(opt_state, on_device), grads)
    return params, jax.block_until_ready(jax.device_put(opt_state, on_host)), loss"""


def offload_code(names: Sequence[str], function: str) -> str:
    """Return code for these arguments, or parts of arguments, which are the optimizer's state."""
    comment = "" if list(names) == ["opt_state"] else f"  # opt_state is {', '.join(names)}"
    return CODE.format(function=function, comment=comment)
