"""The compiled programs of a table that is too long for memory: some rows of an epoch, and the end of an epoch.

They take the same steps and end an epoch in the same way as :mod:`castlereg.training.program`, which does both in one
call on a table that is there as a whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from castlereg.layout import Layout
from castlereg.training.devices import EVERYWHERE, MEMBERS, compiler_options
from castlereg.training.program import MemberInputs, MemberState, Moving, Shared, epoch_end, run_steps
from castlereg.training.row_shares import RowShares


@lru_cache(maxsize=16)
def compiled_parts(layout: Layout, hidden_layer_sizes: tuple[int, ...], mesh: Mesh, lanes: int) -> tuple[Any, Any]:
    """Return the two jitted programs.

    Parameters
    ----------
    layout : Layout
    hidden_layer_sizes : tuple of int
    mesh : Mesh
        Its devices share the members out.
    lanes : int
        Members that advance side by side on one device.

    Returns
    -------
    some_rows : callable
        ``(states, moving, totals, inputs, shared) -> (moving, totals)``: one pass over the rows of ``inputs.batches``.
    end : callable
        ``(states, moving, totals, inputs, shared) -> (states, log)``; ``totals`` are means over the steps.
    """
    shares = RowShares(mesh.shape["rows"])

    def some_rows(
        before: MemberState, moving: Moving, totals: Array, inputs: MemberInputs, shared: Shared
    ) -> tuple[Moving, Array]:
        now = before._replace(**moving._asdict())
        steps = jnp.where(before.active, inputs.steps, 0)
        after, means = run_steps(
            layout, hidden_layer_sizes, jnp.zeros((), jnp.int32), now, inputs._replace(steps=steps), shared, shares
        )
        return after, totals + jnp.where(steps > 0, means * steps, 0.0)

    def end(
        before: MemberState, moving: Moving, totals: Array, inputs: MemberInputs, shared: Shared
    ) -> tuple[MemberState, Array]:
        after, row = epoch_end(layout, hidden_layer_sizes, inputs, shared, shares)(before, moving, totals)
        state: MemberState = jax.tree.map(lambda new, old: jnp.where(before.active, new, old), after, before)
        return state, jnp.where(before.active, row, jnp.nan)

    def over_members(one: Any) -> Any:
        def on_device(states: Any, moving: Any, totals: Any, inputs: Any, shared: Any) -> Any:
            return lax.map(
                lambda member: one(*member, shared),
                (states, moving, totals, inputs),
                batch_size=lanes if lanes > 1 else None,
            )

        return jax.shard_map(
            on_device,
            mesh=mesh,
            in_specs=(MEMBERS, MEMBERS, MEMBERS, MEMBERS, EVERYWHERE),
            out_specs=(MEMBERS, MEMBERS),
            check_vma=False,
        )

    options = compiler_options(mesh)
    return (
        jax.jit(over_members(some_rows), donate_argnums=1, compiler_options=options),
        jax.jit(over_members(end), compiler_options=options),
    )
