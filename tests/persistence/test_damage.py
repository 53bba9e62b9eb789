"""Files that are not as they were written: each is rejected, or predicts exactly the same."""

from __future__ import annotations

import copy
import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import castlereg
from castlereg.persistence import ModelFileError, container
from tests.fitted_models import fitted
from tests.persistence.test_container import header_of, with_header

pytestmark = pytest.mark.xdist_group("model files")
WHICH = ["CastleRegressor", "CastleClassifierCV"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Two saved models: numbers and one network; classes, text, missing values and folds."""
    folder = tmp_path_factory.mktemp("whole")
    for which in WHICH:
        castlereg.save(fitted(which).model, folder / which)
    return {which: (folder / which).read_bytes() for which in WHICH}


def is_rejected(content: bytes, path: Path, which: str) -> bool:
    """Tell whether a file is rejected with the one error; if not, it must predict the same bits."""
    path.write_bytes(content)
    try:
        loaded = castlereg.load(path)
    except ModelFileError as error:
        assert str(error).startswith(f"cannot load {path}: ")
        assert "; " in str(error)
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(loaded.predict(fitted(which).unseen), predicted(which))
    return False


def predicted(which: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(which).model.predict(fitted(which).unseen)


# --- by accident -----------------------------------------------------------------------------------


def mutants(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """A hundred files that differ from a whole one."""
    for _ in range(60):
        flipped = bytearray(content)
        for position in rng.integers(0, len(content), rng.integers(1, 4)):
            flipped[position] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    for position in rng.integers(0, 200, 10):  # the header's length, the digest and the first metadata
        flipped = bytearray(content)
        flipped[position] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    for length in rng.integers(0, len(content), 10):
        yield content[:length]
    for _ in range(5):
        start, end = np.sort(rng.integers(0, len(content), 2))
        yield content[:start] + content[end:]
        yield content[:start] + content[start:end] * 2 + content[end:]
    header, data = header_of(content)
    first, second, *others = (name for name in header if name != "__metadata__")
    for changed in (
        {**header, first: header[second], second: header[first]},
        {name: header[name] for name in ("__metadata__", second, *others)},
        {name: header[name] for name in ("__metadata__", *others, second, first)},
    ):
        moved = with_header(changed, data)
        yield moved[:35] + content[35:99] + moved[99:]  # with the digest as it was
    yield content + content
    yield b"MZ" + content
    yield content + b"\0"
    yield content[::-1]
    yield bytes(len(content))
    yield (len(content) * 2).to_bytes(8, "little") + content[8:]
    yield content[:100] + rng.bytes(len(content) - 100)


@pytest.mark.parametrize("which", WHICH)
def test_a_hundred_damaged_files_are_all_rejected(which: str, files: dict[str, bytes], tmp_path: Path) -> None:
    content = files[which]
    assert not is_rejected(content, tmp_path / "m.castle", which)
    rejected = [
        is_rejected(mutant, tmp_path / "m.castle", which) for mutant in mutants(content, np.random.default_rng(0))
    ]
    assert rejected == [True] * 100


# --- by intent: content that was changed and given a new digest ------------------------------------


def parts_of(content: bytes) -> tuple[Any, dict[str, Any]]:
    model, arrays = container.unpack(io.BytesIO(content))
    return model, arrays._arrays


def with_new_digest(model: Any, arrays: Any) -> bytes:
    header, data = header_of(container.pack({}, arrays, "0"))
    header["__metadata__"]["model"] = json.dumps(model)
    return with_header(header, data)


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
    others = [None, True, -1, 10**20, 0.5, "text", [], {}, [[1]], {"kind": "tuple", "value": []}]
    rng = np.random.default_rng(0)
    tried = rejected = 0
    everywhere = list(places(model))
    for *path, last in everywhere[:: len(everywhere) // 150 + 1]:
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
        is_option = path[:1] in (["parameters"], ["graph"], ["cross_validation"])
        was_rejected = is_rejected_or_loads(with_new_digest(changed, arrays), tmp_path / "m.castle", which, is_option)
        tried, rejected = tried + 1, rejected + was_rejected
    assert tried > 50
    assert rejected > tried / 2


def is_rejected_or_loads(content: bytes, path: Path, which: str, harmless: bool) -> bool:
    """As above; names, levels and scales that are of the right type may change what is predicted."""
    path.write_bytes(content)
    try:
        loaded = castlereg.load(path)
    except ModelFileError:
        return True
    if harmless:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(loaded.predict(fitted(which).unseen), predicted(which))
    return False


@pytest.mark.parametrize("which", WHICH)
def test_arrays_of_another_shape_dtype_or_name_are_rejected(
    which: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    model, arrays = parts_of(files[which])
    history = {column["value"] for _, column in model["history"]["value"]}
    assert history
    for name, array in list(arrays.items())[:: 1 if which == "CastleRegressor" else 2]:
        others: dict[str, Any] = {
            "missing": {key: other for key, other in arrays.items() if key != name},
            "renamed": {(f"{name}x" if key == name else key): other for key, other in arrays.items()},
        }
        is_free = name.startswith("values/") and name not in history  # folds and results can be of any length
        if not is_free:
            others["longer"] = {**arrays, name: np.concatenate([array, array])}
            others["deeper"] = {**arrays, name: array[None]}
            others["empty"] = {**arrays, name: array[:0]}
        if not name.startswith("values/"):
            others["dtype"] = {**arrays, name: array.astype(np.float16)}
        for what, changed in others.items():
            assert is_rejected(with_new_digest(model, changed), tmp_path / "m", which), (name, what)
    assert is_rejected(with_new_digest(model, {**arrays, "more": np.zeros(3)}), tmp_path / "m", which)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_rejected(value: float, files: dict[str, bytes], tmp_path: Path) -> None:
    for which in WHICH:
        model, arrays = parts_of(files[which])
        for name in arrays:
            if name.startswith(("networks/", "columns/")) or name == "graph/weights":
                changed = arrays[name].copy()
                changed.flat[0] = value
                assert is_rejected(with_new_digest(model, {**arrays, name: changed}), tmp_path / "m", which), name


def edited(files: dict[str, bytes], which: str, edit: Callable[[Any, Any], None]) -> bytes:
    model, arrays = parts_of(files[which])
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(model, arrays)
    return with_new_digest(model, arrays)


def _cycle(model: Any, arrays: Any) -> None:
    arrays["graph/weights"][:] = 1.0


def _swap_classes(model: Any, arrays: Any) -> None:
    name = model["preprocessing"]["targets"][0]["classes"]["value"]
    arrays[name] = arrays[name][::-1].copy()


def _target(model: Any) -> Any:
    return model["preprocessing"]["targets"][0]


def _result(model: Any, name: str) -> Any:
    return next(pair for pair in model["cross_validation"]["results"]["value"] if pair[0] == name)


SENSELESS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "another estimator": ("CastleRegressor", lambda m, a: m.update(estimator="Ridge")),
    "an estimator of classes": ("CastleRegressor", lambda m, a: m.update(estimator="CastleClassifier")),
    "an option too many": ("CastleRegressor", lambda m, a: m["parameters"].update(evil=1)),
    "an invalid order": ("CastleRegressor", lambda m, a: m["preprocessing"].update(order=[0, 0, 1])),
    "no columns": ("CastleRegressor", lambda m, a: m["preprocessing"].update(columns=[], order=[])),
    "no targets": ("CastleRegressor", lambda m, a: m["preprocessing"].update(targets=[])),
    "a graph with a cycle": ("CastleRegressor", _cycle),
    "negative weights of edges": ("CastleRegressor", lambda m, a: a["graph/learned_weights"].__imul__(-1)),
    "a confidence above one": ("CastleRegressor", lambda m, a: a["graph/confidence"].__iadd__(5)),
    "a graph with other names": ("CastleRegressor", lambda m, a: m["graph"].update(names=["a", "a", "b", "c"])),
    "no graph": ("CastleRegressor", lambda m, a: m.update(graph=None)),
    "spreads of zero": ("CastleRegressor", lambda m, a: a["columns/spread"].__imul__(0)),
    "a target with a spread of zero": ("CastleRegressor", lambda m, a: _target(m).update(spread=0.0)),
    "a target with an infinite center": ("CastleRegressor", lambda m, a: _target(m).update(center=1e999)),
    "a target without a spread": ("CastleRegressor", lambda m, a: _target(m).pop("spread")),
    "a target of numbers and classes": ("CastleRegressor", lambda m, a: _target(m).update(classes=[0, 1])),
    "no networks": ("CastleRegressor", lambda m, a: m["networks"].update(members=0)),
    "many hidden layers": ("CastleRegressor", lambda m, a: m["networks"].update(hidden_layers=10**9)),
    "cross-validation of a plain model": ("CastleRegressor", lambda m, a: m.update(cross_validation={})),
    "an unknown engine": ("CastleRegressor", lambda m, a: m.update(engine="jax, steam")),
    "an infinite loss": ("CastleRegressor", lambda m, a: m.update(validation_loss=1e999)),
    "a level twice": (
        "CastleClassifierCV",
        lambda m, a: m["preprocessing"]["columns"][3].update(levels=["x", "x", "x"]),
    ),
    "fewer levels": ("CastleClassifierCV", lambda m, a: m["preprocessing"]["columns"][3]["levels"].pop()),
    "levels that are lists": (
        "CastleClassifierCV",
        lambda m, a: m["preprocessing"]["columns"][3].update(levels=[[], [1]]),
    ),
    "missing values that were not there": (
        "CastleClassifierCV",
        lambda m, a: m["preprocessing"]["columns"][3].update(missing=0),
    ),
    "classes out of order": ("CastleClassifierCV", _swap_classes),
    "no cross-validation": ("CastleClassifierCV", lambda m, a: m.update(cross_validation=None)),
    "fewer seeds than folds": ("CastleClassifierCV", lambda m, a: m["cross_validation"]["seeds"].pop()),
    "fewer left-out rows than folds": ("CastleClassifierCV", lambda m, a: m["cross_validation"]["errors"].pop()),
    "folds that are not pairs": ("CastleClassifierCV", lambda m, a: m["cross_validation"].update(folds=[1, 2])),
    "networks of folds that are not there": ("CastleClassifierCV", lambda m, a: a["fold_of"].__iadd__(5)),
    "a choice that is not there": ("CastleClassifierCV", lambda m, a: m["cross_validation"].update(best=1)),
    "params without names": ("CastleClassifierCV", lambda m, a: _result(m, "params").__setitem__(1, [0])),
    "no scores": ("CastleClassifierCV", lambda m, a: _result(m, "mean_test_score").__setitem__(1, None)),
    "a choice of no regularizers": ("CastleClassifierCV", lambda m, a: m["cross_validation"].update(regularizers=3)),
    "no clipping": ("CastleClassifierCV", lambda m, a: m["preprocessing"].update(clipped=False)),
}


@pytest.mark.parametrize("what", SENSELESS)
def test_content_that_makes_no_sense_is_rejected(what: str, files: dict[str, bytes], tmp_path: Path) -> None:
    which, edit = SENSELESS[what]
    assert is_rejected(edited(files, which, edit), tmp_path / "m.castle", which)


def test_a_file_that_does_not_name_an_engine_is_of_jax(files: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "m.castle").write_bytes(edited(files, "CastleRegressor", lambda m, a: m.pop("engine")))
    assert castlereg.load(tmp_path / "m.castle").engine_ == "jax"


def test_text_that_is_not_the_json_of_a_model_is_rejected(files: dict[str, bytes], tmp_path: Path) -> None:
    header, data = header_of(files["CastleRegressor"])
    for text in (
        *("", "[]", "null", "NaN", "\ufffe", "[" * 200_000, '{"a":' * 5000, "9" * 5000),
        '{"estimator": 1, "estimator": 2}',
    ):
        changed = {**header, "__metadata__": {**header["__metadata__"], "model": text}}
        assert is_rejected(with_header(changed, data), tmp_path / "m.castle", "CastleRegressor")


@pytest.mark.parametrize(
    "name", ["../evil.py", "/etc/passwd", "..\\evil.py", "folder/", "more\0.exe", "__class__", "", "n" * 100_000]
)
def test_arrays_with_hostile_names_are_rejected(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    model, arrays = parts_of(files["CastleRegressor"])
    path = tmp_path / "m.castle"
    path.write_bytes(with_new_digest(model, {**arrays, name: np.zeros(3)}))
    with pytest.raises(ModelFileError, match=r"does not belong to the model|n{400}") as raised:
        castlereg.load(path)
    assert len(str(raised.value)) < 1000
    assert list(tmp_path.iterdir()) == [path]


def test_thousands_of_arrays_are_rejected(files: dict[str, bytes], tmp_path: Path) -> None:
    model, arrays = parts_of(files["CastleRegressor"])
    more = {str(i): np.zeros(1, np.int8) for i in range(3000)}
    assert is_rejected(with_new_digest(model, {**arrays, **more}), tmp_path / "m.castle", "CastleRegressor")


# --- other files -----------------------------------------------------------------------------------


def test_a_file_of_version_1_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "m.castle"
    with zipfile.ZipFile(path, "w") as old:
        for name in ("manifest.json", "model.json", "arrays.safetensors"):
            old.writestr(name, "{}")
    with pytest.raises(
        ModelFileError, match=r"written by castlereg 0\.1; fit the model and save it again with this version"
    ):
        castlereg.load(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.castle", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("model.json", bytes(50_000_000))
    with pytest.raises(ModelFileError, match="not a castlereg model file"):
        castlereg.load(tmp_path / "m.castle")


def test_files_that_are_not_models_are_rejected(tmp_path: Path) -> None:
    for content in (
        *(b"", b"PK", b"x" * 500, b"PK\x05\x06" + bytes(18), b"\x80\x05cos\nsystem\n(S'true'\ntR."),
        safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}),
    ):
        (tmp_path / "m.castle").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"pass a file that castlereg\.save wrote"):
            castlereg.load(tmp_path / "m.castle")
    with pytest.raises(FileNotFoundError):
        castlereg.load(tmp_path / "nowhere.castle")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        castlereg.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        castlereg.load(tmp_path / "pipe")
