"""Random streams: one for each purpose, and none depends on another."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np

from castlereg.layout import Layout, Node
from castlereg.network import initialize
from castlereg.random_streams import OfFit, OfNetwork, fit_stream, named_stream, network_stream
from castlereg.regularizers import L2, BatchNorm, Castle, Dropout, InputNoise
from castlereg.training.loop import BatchStream, _Draws
from castlereg.training.state import Setup
from tests.training.cases import members, plan, table


def test_no_two_purposes_share_a_stream() -> None:
    """Of two fits, with several networks each; a purpose and its first numbered streams."""
    firsts = []
    for entropy in (0, 1):
        fit = np.random.SeedSequence(entropy)
        for purpose in OfFit:
            seeds = [fit_stream(fit, purpose), *(fit_stream(fit, purpose, i) for i in range(3))]
            firsts += [np.random.default_rng(seed).integers(2**63) for seed in seeds]
        for i, purpose in product(range(3), OfNetwork):
            network = fit_stream(fit, OfFit.NETWORKS, i)
            streams = [network_stream(network, purpose), *(network_stream(network, purpose, k) for k in range(3))]
            firsts += [stream.integers(2**63) for stream in streams]
    assert len(set(firsts)) == len(firsts) == 2 * 4 * (len(OfFit) + 3 * len(OfNetwork))


def test_purposes_have_different_numbers() -> None:
    for purposes in (OfFit, OfNetwork):
        assert len({int(purpose) for purpose in purposes.__members__.values()}) == len(purposes.__members__)


def test_seeds_of_one_parent_have_different_streams() -> None:
    parents = np.random.SeedSequence(5).spawn(2)
    for make in (fit_stream, lambda seed, purpose: network_stream(seed, purpose).bit_generator.seed_seq):
        keys = [tuple(make(parent, 0).generate_state(2)) for parent in parents]
        assert keys[0] != keys[1]


def test_drawing_more_for_one_purpose_changes_nothing_of_another() -> None:
    """Batches with and without sampled features, and with any regularizers beside them."""

    def batches(features: int | None, *regularizers: Any) -> Any:
        castle = () if features is None else (Castle(features_per_step=features),)
        chosen = [replace(member, regularizers=(*castle, *regularizers)) for member in members(2)]
        return _Draws(Setup(table(), chosen, plan((3,)))).draw(np.ones(2, bool), 2, 4)

    alone, sampled = batches(None), batches(2, Dropout(0.1), InputNoise(0.1))
    np.testing.assert_array_equal(alone[0], sampled[0])
    np.testing.assert_array_equal(batches(2)[1], sampled[1])
    jax.tree.map(np.testing.assert_array_equal, batches(None, L2(), Dropout(0.1))[2][1], sampled[2][1])


def test_starting_weights_do_not_depend_on_other_nodes_layers_or_draws() -> None:
    seed = np.random.SeedSequence(1)
    narrow, wide = (Layout((*(Node() for _ in range(d)), Node(target=True))) for d in (2, 6))
    shallow, deep = initialize(narrow, (4, 4), seed), initialize(narrow, (4, 4, 4), seed)
    np.testing.assert_array_equal(shallow.hidden[0].weights, deep.hidden[0].weights)
    np.testing.assert_array_equal(shallow.output_weights, deep.output_weights)
    np.testing.assert_array_equal(shallow.hidden[0].weights, initialize(wide, (4, 4), seed).hidden[0].weights)
    stream = BatchStream(np.arange(10, dtype=np.int32), 5, seed)
    stream.fill_rows(np.zeros((3, 2, 5), np.int32))
    jax.tree.map(np.testing.assert_array_equal, initialize(narrow, (4, 4), seed), shallow)


def test_every_regularizer_has_its_own_stream() -> None:
    seed = np.random.SeedSequence(0)
    chosen = (L2(), Dropout(), InputNoise(), BatchNorm())
    firsts = {
        named_stream(seed, purpose, type(regularizer).__name__).integers(2**63)
        for purpose in (OfNetwork.REGULARIZER_DRAWS, OfNetwork.REGULARIZER_START)
        for regularizer in chosen
    }
    assert len(firsts) == 8
