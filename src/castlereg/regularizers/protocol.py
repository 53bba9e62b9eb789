"""What a regularizer may do: one class, one hook for each way to intervene.

A regularizer is a frozen dataclass. Its fields annotated ``float`` are its *strengths*: they may differ between
the members of a stack, so a grid of strengths trains as one program. All other fields belong to the program and must be
hashable. Override only the hooks you need; each does nothing by default. Hooks are traced by JAX: they take and return
arrays and use ``self.strength`` as a number.

======================  =======================================================================
hook                    what it is for
======================  =======================================================================
``on_batch``            change the rows of a step (input noise, MixUp)
``on_parameters``       change the weights that a step runs with
``on_dense``            change what a dense layer gives, before its ReLU, with state (batch norm)
``on_hidden``           change hidden units, after the ReLU (dropout)
``penalty``             add to the loss (L1, L2, autoencoder, CASTLE)
``start_heads``         have trained arrays of its own (autoencoder, batch norm)
``start_state``         have a state that changes with every step but is not trained (batch norm)
``draw``                have random numbers for every step
``needs_all_nodes``     train the sub-networks of all columns, not the target's alone (CASTLE)
``folded``              leave something in the network that predicts (batch norm)
``measures_cycles_by``  have the trainer keep a measure of cycles where sub-networks are sampled (CASTLE)
``ends_acyclic``        have the trainer cut the graph to one without cycles on the way (exact CASTLE)
``rows_are_independent``  let devices each take some rows of a batch
======================  =======================================================================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.acyclicity import AcyclicityFunction
from castlereg.layout import Layout
from castlereg.network import Parameters
from castlereg.objective import Batch, Pass


class Regularizer:
    """Base of all regularizers: every hook, doing nothing."""

    needs_hidden_layers: ClassVar[bool] = False  # whether it makes no sense in the linear form

    def __init_subclass__(cls) -> None:
        # A regularizer is a tree of its strengths: a stack of them is one regularizer with arrays for strengths.
        jax.tree_util.register_pytree_with_keys(cls, cls._flatten, cls._unflatten)

    @property
    def needs_all_nodes(self) -> bool:
        """Whether the sub-networks of all nodes are trained, or the targets' alone."""
        return False

    @property
    def ends_acyclic(self) -> bool:
        """Whether the trainer cuts every member's graph to one without cycles and goes on with that.

        :attr:`castlereg.objective.Pass.progress` tells how near the cut is.
        """
        return False

    @property
    def measures_cycles_by(self) -> str | AcyclicityFunction | None:
        """Measure of cycles that its penalty has, as :func:`castlereg.objective.cycle_measure` takes it; None for none.

        Where sub-networks are sampled, :attr:`castlereg.objective.Pass.cycles` is this measure of the whole graph.
        """
        return None

    @property
    def rows_are_independent(self) -> bool:
        """Whether several devices may each take some rows of a batch, see ``docs/devices.md``.

        True says that the loss stays a sum over rows, each times its weight, plus what depends on no row: nothing is
        drawn for each row, no row sees another, and the penalty has no statistic of the batch but such sums.
        """
        return False

    @property
    def features_per_step(self) -> int | None:
        """Features whose sub-networks are trained in each step, drawn at random; None for all."""
        return None

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of what :meth:`penalty` reports, for the history."""
        return ()

    def start_heads(
        self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int, rng: np.random.Generator
    ) -> Any:
        """Return the starting values of trained arrays of its own: a tuple, dict or array of float32.

        Parameters
        ----------
        layout : Layout
        hidden_layer_sizes : tuple of int
        n_trained : int
            Sub-networks that are trained.
        rng : numpy.random.Generator
            The member's own.
        """
        return ()

    def start_state(self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int) -> Any:
        """Return the starting values of arrays that change with every step but are not trained."""
        return ()

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> Any:
        """Draw the random numbers of one epoch on the host: arrays of shape (steps, ...)."""
        return ()

    def on_batch(self, batch: Batch, drawn: Any) -> Batch:
        """Change the rows of a step."""
        return batch

    def on_parameters(self, parameters: Parameters, drawn: Any) -> Parameters:
        """Change the weights that a step runs with; penalties see the weights as they are."""
        return parameters

    def on_dense(
        self, z: Array, layer: int, weight: Array, sampled: Array | None, heads: Any, state: Any
    ) -> tuple[Array, Any]:
        """Change what hidden layer ``layer`` gives before the ReLU.

        Parameters
        ----------
        z : array of shape (rows, nodes, width)
        layer : int
            From 0, the input layer.
        weight : array of shape (rows,)
            Of the batch; 0 for rows that only fill it up.
        sampled : array of int, shape (nodes,), optional
            Which of the trained nodes ``z`` holds; None for all.
        heads, state
            Its own arrays.

        Returns
        -------
        z : array of shape (rows, nodes, width)
        state
        """
        return z, state

    def on_hidden(self, z: Array, layer: int, drawn: Any) -> Array:
        """Change the units of hidden layer ``layer`` after the ReLU, shape (rows, nodes, width)."""
        return z

    def penalty(self, seen: Pass, heads: Any) -> tuple[Array | float, dict[str, Array]]:
        """Return what to add to the loss, and the value of each of :attr:`terms`."""
        return 0.0, {}

    def folded(self, parameters: Parameters, heads: Any, state: Any) -> Parameters:
        """Return the network that predicts: the trained one with what the regularizer leaves in it."""
        return parameters

    @classmethod
    def _field_names(cls) -> tuple[list[str], list[str]]:
        fields: Iterable[dataclasses.Field[Any]] = getattr(cls, "__dataclass_fields__", {}).values()
        strengths = [f.name for f in fields if f.type in (float, "float")]
        return strengths, [f.name for f in fields if f.name not in strengths]

    def _flatten(self) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        strengths, fixed = self._field_names()
        leaves = [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in strengths]
        return leaves, tuple(getattr(self, name) for name in fixed)

    @classmethod
    def _unflatten(cls, fixed: tuple[Any, ...], strengths: Iterable[Any]) -> Self:
        # Not by the constructor, which checks numbers: these may be arrays or tracers.
        self = object.__new__(cls)
        strength_names, fixed_names = cls._field_names()
        for name, value in zip([*strength_names, *fixed_names], [*strengths, *fixed], strict=True):
            object.__setattr__(self, name, value)
        return self


def random_words(rng: np.random.Generator, *shape: int) -> NDArray[np.uint32]:
    """Draw the seeds of random keys, shape (*shape, 2); see :func:`key`."""
    return rng.integers(0, 2**32, size=(*shape, 2), dtype=np.uint32)


def key(words: Array) -> Array:
    """Make a JAX random key of two drawn words."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def check_regularizers(regularizers: Any, hidden_layer_sizes: tuple[int, ...] | None = None) -> tuple[Regularizer, ...]:
    """Refuse what is not a sequence of regularizers that go together; return it as a tuple.

    Parameters
    ----------
    regularizers : sequence of Regularizer
    hidden_layer_sizes : tuple of int, optional
        Of the network they are for.

    Returns
    -------
    tuple of Regularizer
    """
    if isinstance(regularizers, Regularizer | str) or not hasattr(regularizers, "__iter__"):
        raise ValueError(f"regularizers={regularizers!r} must be a sequence, such as [L2(0.01), Dropout(0.2)]")
    checked = tuple(regularizers)
    for one in checked:
        if not isinstance(one, Regularizer):
            call = f": make one with {one.__name__}()" if isinstance(one, type) and issubclass(one, Regularizer) else ""
            raise ValueError(f"regularizers has {one!r}, which is no regularizer{call}")
        if one.needs_hidden_layers and hidden_layer_sizes == ():
            raise ValueError(
                f"{type(one).__name__} acts on hidden layers, and hidden_layer_sizes=() has none: leave it out or "
                "give the network a hidden layer"
            )
    names = [type(one).__name__ for one in checked] + [name for one in checked for name in one.terms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"regularizers has {twice} more than once: give each once, with the strength you want")
    return checked
