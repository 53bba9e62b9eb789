"""Nodes and channels."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.layout import Layout, Node


def test_channels_and_outputs_of_mixed_kinds(mixed_layout: Layout) -> None:
    assert mixed_layout.n_nodes == 5
    assert mixed_layout.n_features == 4
    assert mixed_layout.n_channels == 7
    assert mixed_layout.n_feature_channels == 6
    assert mixed_layout.targets == (4,)
    np.testing.assert_array_equal(mixed_layout.channel_nodes, [0, 1, 2, 3, 3, 3, 4])
    np.testing.assert_array_equal(mixed_layout.output_channels[3], [3, 4, 5])
    np.testing.assert_array_equal(mixed_layout.output_channels[:, 0], [0, 1, 2, 3, 6])
    np.testing.assert_array_equal(mixed_layout.output_used.sum(axis=1), [1, 1, 1, 3, 1])


def test_no_node_is_its_own_input_and_no_target_anothers(mixed_layout: Layout) -> None:
    for channel, node in enumerate(mixed_layout.channel_nodes):
        assert mixed_layout.edge_mask()[channel, node] == 0
    two = Layout((Node(), Node(target=True), Node("binary", target=True)))
    np.testing.assert_array_equal(two.edge_mask(), [[0, 1, 1], [1, 0, 0], [1, 0, 0]])


def test_constant_nodes_have_no_edges(mixed_layout: Layout) -> None:
    mask = mixed_layout.edge_mask(without=(3,))
    assert not mask[3:6].any()
    assert not mask[:, 3].any()
    assert mask[0, 1] == 1


def test_extra_channels_enter_and_are_not_predicted() -> None:
    layout = Layout((Node(extra=2, missing=True, clipped=True), Node(), Node(target=True)))
    np.testing.assert_array_equal(layout.channel_nodes, [0, 0, 0, 0, 1, 2])
    np.testing.assert_array_equal(layout.is_input_only, [0, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(layout.is_clipped, [1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(layout.output_channels[:, 0], [0, 4, 5])
    assert (layout.n_feature_channels, layout.output_width) == (5, 1)
    for wrong in ({"kind": "binary", "extra": 1}, {"target": True, "extra": 1}, {"extra": -1}):
        with pytest.raises(ValueError, match="only numeric features can have extra channels"):
            Node(**wrong)


def test_a_node_with_gaps_has_a_flag_behind_its_values() -> None:
    layout = Layout((Node(missing=True), Node("categorical", 3, missing=True), Node(clipped=True), Node(target=True)))
    np.testing.assert_array_equal(layout.channel_nodes, [0, 0, 1, 1, 1, 1, 2, 3])
    np.testing.assert_array_equal(layout.is_input_only, [0, 1, 0, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(layout.is_clipped, [0, 0, 0, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(layout.output_channels[:, 0], [0, 2, 6, 7])
    np.testing.assert_array_equal(layout.output_channels[1], [2, 3, 4])
    assert layout.has_missing
    assert layout.n_feature_channels == 7
    assert not layout.edge_mask()[2:6, 1].any()


def test_nodes_with_the_same_loss_are_grouped() -> None:
    layout = Layout((Node("binary"), Node(), Node(missing=True), Node("categorical", 3), Node(target=True)))
    found = [(node.kind, indices.tolist()) for node, indices in layout.alike]
    assert found == [("binary", [0]), ("numeric", [1, 2, 4]), ("categorical", [3])]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Node("ordinal"), "ordinal"),  # type: ignore[arg-type]
        (lambda: Node("categorical", 1), "levels=1"),
        (lambda: Node("numeric", 3), "levels=3"),
        (lambda: Node(target=True, missing=True), "a target cannot have missing values"),
        (lambda: Node("binary", clipped=True), "only numeric nodes can be clipped, not binary"),
        (lambda: Layout((Node(target=True), Node())), "after all features"),
        (lambda: Layout((Node(),)), "needs a feature and a target"),
        (lambda: Layout((Node(target=True),)), "needs a feature and a target"),
    ],
)
def test_bad_layouts_raise_with_the_value(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
