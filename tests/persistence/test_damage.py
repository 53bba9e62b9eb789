"""Files that are not as they were written: each is rejected, or predicts exactly the same."""

from __future__ import annotations

import copy
import json
import os
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import castlereg
from castlereg.persistence import _MAX_HEADER, ModelFileError, _digest
from tests.fitted_models import fitted

pytestmark = pytest.mark.xdist_group("model files")
WHICH = ["CastleRegressor", "CastleClassifierCV"]
Edit = Callable[[Any, dict[str, Any]], Any]  # of the JSON and the arrays


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Two saved models: numbers and one network; classes, text, missing values and folds."""
    folder = tmp_path_factory.mktemp("whole")
    for which in WHICH:
        castlereg.save(fitted(which).model, folder / which)
    return {which: (folder / which).read_bytes() for which in WHICH}


def message_of(content: bytes, path: Path) -> str:
    """Load a file that must be rejected, and return the reason."""
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as raised:
        castlereg.load(path)
    message = str(raised.value)
    assert message.startswith(f"cannot load {path}: ") and "; " in message
    assert "\n" not in message and len(message) < 1000
    assert list(path.parent.iterdir()) == [path]
    return message


def is_rejected(content: bytes, path: Path, which: str, *, may_differ: bool = False) -> bool:
    """Tell whether a file is rejected with the one error; if not, it must predict the same bits."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = castlereg.load(path)
    except ModelFileError:
        return True
    if not may_differ:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, _, _, unseen = fitted(which)
            np.testing.assert_array_equal(loaded.predict(unseen), model.predict(unseen))
    return False


def parts_of(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the JSON and the arrays of a file."""
    length = int.from_bytes(content[:8], "little")
    arrays = safetensors.numpy.load(content)
    arrays.pop("sha256")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["castlereg"]), arrays


def with_digest(model: Any, arrays: dict[str, Any]) -> bytes:
    """Return a file with a digest that is right; the JSON may be text."""
    metadata = {"castlereg": model if isinstance(model, str) else json.dumps(model)}
    return safetensors.numpy.save({**arrays, "sha256": _digest(metadata, arrays)}, metadata)


def edited(content: bytes, edit: Edit) -> bytes:
    model, arrays = parts_of(content)
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(model, arrays)
    return with_digest(model, arrays)


def find(content: Any, kind: str) -> Any:
    """Return the fields of the first object of a class."""
    if isinstance(content, dict) and content.get("kind") == kind:
        return content["value"]
    items = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return next((found for item in items if (found := find(item, kind)) is not None), None)


def array_of(arrays: dict[str, Any], end: str) -> Any:
    return next(array for name, array in arrays.items() if name.endswith(end))


def test_a_file_with_a_right_digest_is_loaded(files: dict[str, bytes], tmp_path: Path) -> None:
    for which in WHICH:
        assert not is_rejected(edited(files[which], lambda model, arrays: None), tmp_path / "m", which)


# --- by accident -----------------------------------------------------------------------------------


def mutants(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """A hundred files that differ from a whole one."""
    for region in (len(content), 200):  # everywhere; and the header's length and the first metadata
        for _ in range(40 if region > 200 else 20):
            flipped = bytearray(content)
            for position in rng.integers(0, region, rng.integers(1, 4)):
                flipped[position] ^= 1 << rng.integers(8)
            yield bytes(flipped)
    for length in rng.integers(0, len(content), 20):
        yield content[:length]
    for _ in range(7):
        start, end = np.sort(rng.integers(0, len(content), 2))
        yield content[:start] + content[end:]
        yield content[:start] + content[start:end] * 2 + content[end:]
    yield content + content
    yield b"MZ" + content
    yield content + b"\0"
    yield content[::-1]
    yield bytes(len(content))
    yield (len(content) * 2).to_bytes(8, "little") + content[8:]


@pytest.mark.parametrize("which", WHICH)
def test_a_hundred_damaged_files_are_all_rejected(which: str, files: dict[str, bytes], tmp_path: Path) -> None:
    damaged = list(mutants(files[which], np.random.default_rng(0)))
    assert len(damaged) == 100
    assert [is_rejected(content, tmp_path / "m.castle", which) for content in damaged] == [True] * 100


def test_every_flipped_bit_of_the_end_of_the_header_is_noticed(files: dict[str, bytes], tmp_path: Path) -> None:
    content = files["CastleRegressor"]
    end = 8 + int.from_bytes(content[:8], "little")
    for position in range(end - 60, end + 8):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            assert is_rejected(bytes(flipped), tmp_path / "m", "CastleRegressor"), (position, bit)


# --- by intent: content that was changed and given a new digest ------------------------------------


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys = content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield from places(content[key], (*path, key))


@pytest.mark.parametrize("which", WHICH)
def test_fields_of_another_type_are_rejected_or_change_no_prediction(
    which: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Fields all over the JSON are left out in turn, or replaced by something else."""
    model, arrays = parts_of(files[which])
    others: list[Any] = [None, True, -1, 10**20, 0.5, "text", [], {}, [[1]], {"kind": "tuple", "value": []}]
    others += [{"kind": "same", "value": 0}, {"kind": "object", "value": ["os", "system"]}]
    rng = np.random.default_rng(0)
    tried = rejected = 0
    everywhere = list(places(model))
    for *path, last in everywhere[:: len(everywhere) // 200 + 1]:
        changed = copy.deepcopy(model)
        inside = changed
        for key in path:
            inside = inside[key]
        choice = int(rng.integers(len(others) + 1))
        if choice == len(others):
            del inside[last]
        elif inside[last] == others[choice]:
            continue
        else:
            inside[last] = others[choice]
        # Names, levels and scales of the right type may change what is predicted.
        harmless = path[:1] == ["options"]
        rejected += is_rejected(with_digest(changed, arrays), tmp_path / "m", which, may_differ=not harmless)
        tried += 1
    assert tried > 80
    assert rejected > tried / 2


@pytest.mark.parametrize("which", WHICH)
def test_arrays_of_another_shape_dtype_or_name_are_rejected(
    which: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    model, arrays = parts_of(files[which])
    assert len(arrays) > 10
    for name, array in list(arrays.items())[:: 1 if which == "CastleRegressor" else 2]:
        others: dict[str, Any] = {
            "missing": {key: other for key, other in arrays.items() if key != name},
            "renamed": {(f"{name}x" if key == name else key): other for key, other in arrays.items()},
        }
        is_free = (
            name.startswith("options") or "/folds/" in name or name.endswith("/index") or not array.ndim
        )  # of any length and type
        if not is_free:
            others["longer"] = {**arrays, name: np.concatenate([array, array])}
            others["deeper"] = {**arrays, name: array[None]}
            others["empty"] = {**arrays, name: array[:0]}
            others["without size"] = {**arrays, name: np.empty((0, 10**9), array.dtype)}
            if "/history/" not in name and "/targets/" not in name:
                others["dtype"] = {**arrays, name: array.astype(np.float16)}
        for what, changed in others.items():
            assert is_rejected(with_digest(model, changed), tmp_path / "m", which), (name, what)


@pytest.mark.parametrize("name", ["../evil.py", "/etc/passwd", "more\0.exe", "__class__", "", "n" * 100_000])
def test_arrays_that_do_not_belong_are_rejected(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    model, arrays = parts_of(files["CastleRegressor"])
    message = message_of(with_digest(model, {**arrays, name: np.zeros(3)}), tmp_path / "m")
    assert "which are unknown" in message or len(name) == 100_000
    many = {str(i): np.zeros(1, np.int8) for i in range(3000)}
    message_of(with_digest(model, {**arrays, **many}), tmp_path / "m")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_rejected(value: float, files: dict[str, bytes], tmp_path: Path) -> None:
    for which in WHICH:
        model, arrays = parts_of(files[which])
        names = [name for name in arrays if "/parameters/" in name or "/standardization/" in name]
        names += [name for name in arrays if name.endswith(("/center", "/spread", "/weight_array"))]
        assert len(names) > 8
        for name in names:
            changed = arrays[name].copy()
            changed.flat[0] = value
            assert is_rejected(with_digest(model, {**arrays, name: changed}), tmp_path / "m", which), name


def _column(model: Any, number: int = 3) -> Any:
    return find(model, "Preprocessing")["schema"]["value"][number]["value"]


def _node(model: Any, number: int) -> Any:
    return find(model, "Preprocessing")["nodes"]["value"][number]["value"]


def _swap_classes(model: Any, arrays: Any) -> None:
    classes = array_of(arrays, "/classes")
    classes[:] = classes[::-1].copy()


def _result(model: Any, name: str) -> Any:
    return next(pair for pair in find(model, "FoldRecord")["results"]["value"] if pair[0] == name)


REGRESSOR: dict[str, Edit] = {
    "another estimator": lambda m, a: m.update({"class": "Ridge"}),
    "an estimator of classes": lambda m, a: m.update({"class": "CastleClassifier"}),
    "a structural model": lambda m, a: m.update({"class": "FittedWorld"}),
    "an option too many": lambda m, a: m["options"].update(evil=1),
    "an object that is not a model": lambda m, a: m.update(model={"kind": "L2", "value": {"strength": 0.1}}),
    "an estimator within": lambda m, a: m["options"].update(castle={"kind": "CastleRegressor", "value": {}}),
    "a field too many": lambda m, a: find(m, "FittedModel").update(evil=1),
    "no columns": lambda m, a: find(m, "Preprocessing")["schema"].update(value=[]),
    "no targets": lambda m, a: find(m, "Preprocessing")["targets"].update(value=[]),
    "billions of channels": lambda m, a: _node(m, 0).update(kind="categorical", levels=10**10),
    "billions of seasons": lambda m, a: _node(m, 0).update(extra=10**10),
    "a graph with a cycle": lambda m, a: array_of(a, "/weight_array").fill(1.0),
    "negative weights of edges": lambda m, a: array_of(a, "/learned_array").__isub__(9),
    "an agreement above one": lambda m, a: array_of(a, "/agreement_array").__iadd__(5),
    "a graph with a name twice": lambda m, a: find(m, "InputGraph")["names"].update(value=["a", "a", "b", "c"]),
    "a graph with other names": lambda m, a: find(m, "InputGraph")["names"].update(value=["a", "b", "c", "d"]),
    "weights of candidates that do not sum to one": lambda m, a: array_of(a, "/blend/weights").__imul__(2),
    "candidates without names": lambda m, a: find(m, "Blend")["names"]["value"].pop(),
    "no candidates": lambda m, a: find(m, "Blend")["parts"].update(value=[]),
    "an importance too many": lambda m, a: a.update(
        {k: np.append(v, 0.5) for k, v in a.items() if k.endswith("/known_importances")}
    ),
    "a rule for an edge too many": lambda m, a: a.update(
        {k: np.ones((5, 5), bool) for k in a if k.endswith("/edges/allowed")}
    ),
    "rows of another table": lambda m, a: a.update(
        {k: v[:, :2] for k, v in a.items() if k.endswith("/rows/columns/values")}
    ),
    "spreads of zero": lambda m, a: array_of(a, "/spread").__imul__(0),
    "a target with a spread of zero": lambda m, a: find(m, "NumericTarget").update(spread=0.0),
    "a target with an infinite center": lambda m, a: find(m, "NumericTarget").update(center=1e999),
    "a target with a center that is NaN": lambda m, a: find(m, "NumericTarget").update(center=float("nan")),
    "a target without a spread": lambda m, a: find(m, "NumericTarget").pop("spread"),
    "a loss that is a number": lambda m, a: find(m, "NumericTarget").update(loss=1.0),
    "an unknown activation": lambda m, a: find(m, "Activation").update(name="sine"),
    "no hidden layers": lambda m, a: find(m, "Parameters")["hidden"].update(value=[]),
    "an unknown engine": lambda m, a: find(m, "FittedModel").update(engine="jax, steam"),
    "a selection of columns that are not there": lambda m, a: find(m, "FittedModel").update(
        selected={"kind": "tuple", "value": [0, 7]}
    ),
    "a reference to a later object": lambda m, a: m["model"].update(kind="same", value=10**6),
    "an object of Python": lambda m, a: m["model"].update(kind="os.system", value=["true"]),
    "a kind that is a list": lambda m, a: m["model"].update(kind=["tuple"]),
    "a new format": lambda m, a: m.update(format=4),
}
CLASSIFIER: dict[str, Edit] = {
    "a level twice": lambda m, a: _column(m)["levels"].update(value=["x", "x", "x"]),
    "fewer levels": lambda m, a: _column(m)["levels"]["value"].pop(),
    "levels that are lists": lambda m, a: _column(m)["levels"].update(value=[[], [1]]),
    "missing values that were not there": lambda m, a: _column(m).update(missing=0),
    "seasons without dates": lambda m, a: _column(m, 0).update(seasons={"kind": "tuple", "value": ["year"]}),
    "classes out of order": _swap_classes,
    "fewer seeds than folds": lambda m, a: find(m, "FoldRecord")["seeds"].pop(),
    "fewer left-out rows than folds": lambda m, a: find(m, "FoldRecord")["errors"].pop(),
    "folds that are not pairs": lambda m, a: find(m, "FoldRecord").update(folds=[1, 2]),
    "networks of folds that are not there": lambda m, a: array_of(a, "/fold_of").__iadd__(5),
    "a choice that is not there": lambda m, a: find(m, "FoldRecord").update(best=1),
    "params without names": lambda m, a: _result(m, "params").__setitem__(1, 0),
    "no scores": lambda m, a: _result(m, "mean_test_score").__setitem__(1, None),
    "a choice of no regularizers": lambda m, a: find(m, "FoldRecord").update(regularizers=3),
    "no clipping": lambda m, a: [_node(m, k).update(clipped=False) for k in range(7)],
}


@pytest.mark.parametrize(("which", "edit"), [
    *(pytest.param(WHICH[0], edit, id=name) for name, edit in REGRESSOR.items()),
    *(pytest.param(WHICH[1], edit, id=name) for name, edit in CLASSIFIER.items()),
])  # fmt: skip
def test_content_that_makes_no_sense_is_rejected(
    which: str, edit: Edit, files: dict[str, bytes], tmp_path: Path
) -> None:
    tracemalloc.start()
    message_of(edited(files[which], edit), tmp_path / "m.castle")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


def test_text_that_is_not_the_json_of_a_model_is_rejected(files: dict[str, bytes], tmp_path: Path) -> None:
    _, arrays = parts_of(files["CastleRegressor"])
    for text in ("", "[]", "null", "NaN", "\ufffe", "[" * 200_000, '{"a":' * 5000, "9" * 5000, '{"format": 3}'):
        message_of(with_digest(text, arrays), tmp_path / "m.castle")


def test_deep_nesting_is_rejected(files: dict[str, bytes], tmp_path: Path) -> None:
    def nest(model: Any, arrays: Any) -> None:
        for _ in range(100):
            model["options"]["random_state"] = [model["options"]["random_state"]]

    assert "nested too deeply" in message_of(edited(files["CastleRegressor"], nest), tmp_path / "m")


# --- the container ---------------------------------------------------------------------------------


def _with_header(change: Callable[[Any], Any], content: bytes) -> bytes:
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + content[end:]


LIES: dict[str, dict[str, Any]] = {
    "offsets outside": {"data_offsets": [0, 10**9]},
    "offsets backwards": {"data_offsets": [8, 0]},
    "negative offsets": {"data_offsets": [-8, 0]},
    "overlapping": {"data_offsets": [0, 24]},
    "an overflowing shape": {"shape": [2**62, 2**62]},
    "a negative shape": {"shape": [-2]},
    "a shape of another size": {"shape": [1000]},
    "a dtype that NumPy lacks": {"dtype": "F8_E4M3"},
    "an unknown dtype": {"dtype": "OBJECT"},
}


@pytest.mark.parametrize("lie", LIES)
def test_tensors_that_lie_are_rejected(lie: str, files: dict[str, bytes], tmp_path: Path) -> None:
    def change(header: Any) -> None:
        next(entry for name, entry in header.items() if name.endswith("/center")).update(LIES[lie])

    message_of(_with_header(change, files["CastleRegressor"]), tmp_path / "m")


def test_a_huge_header_is_rejected_before_it_is_read(files: dict[str, bytes], tmp_path: Path) -> None:
    """Even when the file, which takes no room on disk, is as long as it says."""
    path, limit = tmp_path / "sparse", 1000 * _MAX_HEADER
    for length, message in (
        *((length, "claims .* but the limit is 20000 kB") for length in (limit + 1, 2**40, 2**63, 2**64 - 1)),
        (limit, "incomplete or damaged"),
    ):
        with open(path, "wb") as file:
            file.write(length.to_bytes(8, "little") + files["CastleRegressor"][8:])
            file.truncate(limit + 100)
        tracemalloc.start()
        with pytest.raises(ModelFileError, match=message):
            castlereg.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5_000_000


def test_booleans_are_zero_or_one(files: dict[str, bytes], tmp_path: Path) -> None:
    def lie(model: Any, arrays: Any) -> None:
        arrays["options/0"] = np.array([1, 2], np.uint8).view(bool)
        model["options"]["hidden_layer_sizes"] = {"kind": "array", "value": "options/0"}

    assert "invalid type" in message_of(edited(files["CastleRegressor"], lie), tmp_path / "m")


# --- other files -----------------------------------------------------------------------------------


def test_files_of_older_versions_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "m.castle"
    with zipfile.ZipFile(path, "w") as old:
        for name in ("manifest.json", "model.json", "arrays.safetensors"):
            old.writestr(name, "{}")
    text = b'{"__metadata__":{"sha256":"%s","format":"castlereg model","version":"2"}}' % (b"0" * 64)
    for content in (path.read_bytes(), len(text).to_bytes(8, "little") + text):
        assert "fit the model and save it again with this version" in message_of(content, path)


def test_files_that_are_not_models_are_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.castle", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("model.json", bytes(50_000_000))
    for content in (
        *((tmp_path / "m.castle").read_bytes(), b"", b"PK", b"x" * 500, b"\x80\x05cos\nsystem\n(S'true'\ntR."),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}),
    ):
        assert "pass a file that castlereg.save wrote" in message_of(content, tmp_path / "m.castle")
    with pytest.raises(FileNotFoundError):
        castlereg.load(tmp_path / "nowhere.castle")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        castlereg.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        castlereg.load(tmp_path / "pipe")
