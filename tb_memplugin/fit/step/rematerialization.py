"""Other policies than a step's own of the values that its backward pass keeps of the forward pass.

A policy replaces that of each `jax.checkpoint` which the step calls, however it was imported, or wraps the bodies of
`jax.lax.scan` that have none. Where a step has neither, it wraps the function to differentiate: what it keeps there
are the only inputs of what is computed again, layer by layer. A policy that keeps nothing inside would save nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.script.jits import every_equation
from tb_memplugin.fit.step.changed_program import replaced
from tb_memplugin.model.fit import POLICIES, Remat, RematKind

NAME = re.compile(r"[\w./-]{1,100}")  # which a change can contain
MAX_NAMES = 16
MAX_SINGLE = 4  # names that are kept alone, too
DIFFERENTIATED = ("grad", "value_and_grad", "vjp")
KEEPING = (RematKind.DOTS, RematKind.NAMES, RematKind.OFFLOAD)  # which keep something inside of a function
WRAP = "wrap its layers in jax.checkpoint"


@dataclass
class Checkpoints:
    """Calls that a step was seen to make while it was traced."""

    names: dict[str, None] = field(default_factory=dict)  # those of jax.ad_checkpoint.checkpoint_name, in order
    has_policies: bool = False  # of jax.checkpoint
    has_scans: bool = False
    differentiates: bool = False

    def policies_to_try(self, on_host: bool) -> list[str]:
        """Return changes of what the backward pass keeps. `on_host`: whether arrays can wait in the host's memory."""
        names = [name for name in self.names if NAME.fullmatch(name)][:MAX_NAMES]
        listed = ",".join(names)
        kinds = [RematKind.NONE] if self.has_policies else []
        kinds += [RematKind.FULL] if self.has_policies or (self.has_scans and self.differentiates) else []
        kinds += [RematKind.DOTS] if kinds or self.differentiates else []
        found = [f"remat:{kind}" for kind in kinds]
        if found and names:
            found += [f"remat:names:{name}" for name in names[:MAX_SINGLE] if len(names) > 1]
            found += [f"remat:names:{listed}", *([f"remat:offload:{listed}"] if on_host else [])]
        return found


@contextmanager
def watched_checkpoints(remat: Remat | None) -> Iterator[Checkpoints]:
    """Yield the calls that a step makes meanwhile. Its backward pass keeps what `remat` says, if that is given.

    InputError where the change applies to none of these calls.
    """
    import jax

    seen = Checkpoints()
    try:
        from jax.extend.core.primitives import name_p, remat_p
    except ImportError:  # before JAX 0.4.36, or changed since; other candidates compile all the same
        yield seen
        if remat is not None:
            raise InputError("This version of JAX has other checkpoints", f"remat:{remat.kind}", WRAP) from None
        return
    bind: Callable[..., Any] = remat_p.bind
    name: Callable[..., Any] = name_p.bind
    own, wrapped = _policy(remat), _policy(remat)  # two objects: of the step's own calls, and of calls that are added

    def bind_name(*values: Any, **params: Any) -> Any:
        seen.names[params["name"]] = None
        return name(*values, **params)

    def bind_remat(*values: Any, **params: Any) -> Any:
        if params["policy"] is wrapped and wrapped is not None:
            # One around another would run the inner one's forward pass a third time.
            has_own = any(equation.primitive is remat_p for equation in every_equation(params["jaxpr"]))
            return _inlined(params["jaxpr"], values) if has_own else bind(*values, **params)
        seen.has_policies = True
        return bind(*values, **{**params, "policy": own or params["policy"]})

    scan = jax.lax.scan

    @wraps(scan)
    def scan_kept(f: Any, *positional: Any, **named: Any) -> Any:
        seen.has_scans = True
        wraps_body = remat is not None and remat.kind is not RematKind.NONE
        body = jax.checkpoint(f, policy=wrapped, prevent_cse=False) if wraps_body else f
        return scan(body, *positional, **named)

    with ExitStack() as changed:
        changed.enter_context(replaced(remat_p, "bind", bind_remat))
        changed.enter_context(replaced(name_p, "bind", bind_name))
        changed.enter_context(replaced(jax.lax, "scan", scan_kept))
        wraps_loss = remat is not None and remat.kind in KEEPING
        for function in DIFFERENTIATED:
            replacing = _of_kept(getattr(jax, function), wrapped if wraps_loss else None, seen)
            changed.enter_context(replaced(jax, function, replacing))
        yield seen
    if remat is not None:
        _require(remat, seen)


def _inlined(jaxpr: Any, values: Sequence[Any]) -> Any:
    """Compute the results of a jaxpr where it is called."""
    from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

    return jaxpr_as_fun(jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, ()))(*values)


def _of_kept(differentiate: Callable[..., Any], policy: Any, seen: Checkpoints) -> Callable[..., Any]:
    """Return `jax.grad` or its like, of functions that keep what a policy says, if there is one."""
    import jax

    @wraps(differentiate)
    def of_kept(fun: Callable[..., Any], *options: Any, **named: Any) -> Any:
        seen.differentiates = True
        if policy is None:
            return differentiate(fun, *options, **named)

        @wraps(fun)
        def kept(*positional: Any, **keywords: Any) -> Any:
            # Without arguments, as some may be no arrays.
            return jax.checkpoint(lambda: fun(*positional, **keywords), policy=policy)()

        return differentiate(kept, *options, **named)

    return of_kept


def _policy(remat: Remat | None) -> Any:
    """Return a new object with a policy of JAX; None without a change."""
    import jax

    if remat is None:
        return None
    policy = getattr(jax.checkpoint_policies, POLICIES[remat.kind])
    if remat.names:
        policy = policy(*(() if remat.options else remat.names), **remat.options)
    return lambda *primitive, **params: policy(*primitive, **params)


def _require(remat: Remat, seen: Checkpoints) -> None:
    if missing := [name for name in remat.names if name not in seen.names]:
        known = f"it has {', '.join(list(seen.names)[:8])}" if seen.names else "give arrays names by checkpoint_name"
        raise InputError("The step has no array of this name", ", ".join(missing), known)
    scans = seen.has_scans and remat.kind is not RematKind.NONE
    if not (seen.has_policies or scans or (seen.differentiates and remat.kind in KEEPING)):
        raise InputError("The step has nothing that this change applies to", f"remat:{remat.kind}", WRAP)
