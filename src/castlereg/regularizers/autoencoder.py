"""Supervised autoencoder: the last hidden layer must also predict the features."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.layout import Layout
from castlereg.losses import cell_losses
from castlereg.network import glorot
from castlereg.options import check_number
from castlereg.regularizers.protocol import Own, Pass, Regularizer


@dataclass(frozen=True)
class Autoencoder(Regularizer):
    """Add the loss of reconstructing all features from the last hidden layer of the target's sub-network (SAE).

    The reconstruction head is one dense layer, which is trained with the network and dropped afterwards. The loss is
    the mean over the features of the squared error, logistic or softmax loss, by the kind of the column; missing values
    do not count. Unlike in CASTLE, every feature is reconstructed from all features, including itself.

    Parameters
    ----------
    strength : float
        Factor of the loss. At 1, the mean loss of the features has the same weight as the loss of the target.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Autoencoder(1.0)], max_epochs=2, random_state=0)
    >>> model.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1], [2]]).shape
    (2,)
    """

    strength: float = 1.0

    needs_hidden_layers = True
    terms = ("autoencoder",)

    def __post_init__(self) -> None:
        check_number("Autoencoder's strength", self.strength, least=0)

    def start(
        self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int, rng: np.random.Generator
    ) -> Own:
        """Draw the weights of one head per target."""
        outputs = layout.n_features * layout.output_width
        weights = np.stack([glorot(rng, hidden_layer_sizes[-1], outputs) for _ in layout.targets])
        return Own({"weights": weights, "bias": np.zeros((len(layout.targets), outputs), np.float32)})

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted loss and the loss."""
        layout = seen.layout
        assert seen.units is not None  # needs_hidden_layers
        features = jnp.arange(layout.n_features)
        units = seen.units[:, -len(layout.targets) :].swapaxes(0, 1)  # (targets, rows, width)
        outputs = (units @ own.trained["weights"] + own.trained["bias"][:, None]).reshape(
            len(layout.targets), -1, layout.n_features, layout.output_width
        )
        weight = seen.node_weight[features]
        losses = jnp.stack(
            [cell_losses(of_target, seen.batch, layout, features, seen.null_loss) for of_target in outputs]
        ).mean(axis=0)
        loss = jnp.sum(seen.batch.weight[:, None] * losses * weight) / jnp.maximum(jnp.sum(weight), 1.0)
        return self.strength * loss, {"autoencoder": loss}
