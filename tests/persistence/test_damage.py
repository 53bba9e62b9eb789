"""Files that are not as they were written: each is refused, or predicts exactly the same."""

from __future__ import annotations

import copy
import io
import json
import os
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import castlereg
from castlereg.persistence import ModelFileError, archive
from tests.fitted_models import fitted

pytestmark = pytest.mark.xdist_group("model files")
PIECES = frozenset(("model.json", "arrays.safetensors"))
WHICH = ["CastleRegressor", "CastleClassifierCV"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Two saved models: numbers and one network; classes, text, gaps and folds."""
    folder = tmp_path_factory.mktemp("whole")
    for which in WHICH:
        castlereg.save(fitted(which).model, folder / which)
    return {which: (folder / which).read_bytes() for which in WHICH}


def is_refused(content: bytes, path: Path, which: str) -> bool:
    """Tell whether a file is refused with the one error; if not, it must predict the same bits."""
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
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            flipped[place] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    for place in rng.integers(1, 400, 10):  # where the zip's own records are
        flipped = bytearray(content)
        flipped[-place] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    for length in rng.integers(0, len(content), 10):
        yield content[:length]
    for _ in range(5):
        start, end = np.sort(rng.integers(0, len(content), 2))
        yield content[:start] + content[end:]
        yield content[:start] + content[start:end] * 2 + content[end:]
    members = [content[a:b] for a, b in zip(*two_local_ends(content), strict=True)]
    rest = content[sum(map(len, members)) :]
    yield b"".join([members[1], members[0], *members[2:], rest])
    yield b"".join([*members, members[1], rest])
    yield b"".join([*members[1:], rest])
    yield content + content
    yield b"MZ" + content
    yield content + b"\0"
    yield content[::-1]
    yield bytes(len(content))
    wrong_length = bytearray(content)
    wrong_length[18:22] = struct.pack("<L", len(content) * 2)
    yield bytes(wrong_length)
    yield content[:100] + rng.bytes(len(content) - 100)


def two_local_ends(content: bytes) -> tuple[list[int], list[int]]:
    """Where the members of a zip begin and end."""
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        starts = [member.header_offset for member in opened.infolist()]
        return starts, [*starts[1:], opened.start_dir]


@pytest.mark.parametrize("which", WHICH)
def test_a_hundred_damaged_files_are_refused_or_predict_the_same(
    which: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    content = files[which]
    assert not is_refused(content, tmp_path / "m.castle", which)
    refused = [is_refused(one, tmp_path / "m.castle", which) for one in mutants(content, np.random.default_rng(0))]
    assert len(refused) == 100
    assert sum(refused) >= 95  # the others differ in dates and such that no one reads


# --- by intent: content that was changed and given new digests -------------------------------------


def pieces_of(content: bytes) -> tuple[Any, dict[str, Any]]:
    pieces = archive.read_archive(io.BytesIO(content), PIECES)
    return json.loads(pieces["model.json"]), safetensors.numpy.load(pieces["arrays.safetensors"])


def with_new_digests(model: Any, arrays: Any) -> bytes:
    text = model if isinstance(model, bytes) else json.dumps(model).encode()
    packed = arrays if isinstance(arrays, bytes) else safetensors.numpy.save(arrays)
    file = io.BytesIO()
    archive.write_archive(file, {"model.json": text, "arrays.safetensors": packed}, "0")
    return file.getvalue()


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys = content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield from places(content[key], (*path, key))


@pytest.mark.parametrize("which", WHICH)
def test_fields_of_another_type_are_refused_or_change_no_prediction(
    which: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Fields all over the JSON are left out in turn, or replaced by something else."""
    model, arrays = pieces_of(files[which])
    others = [None, True, -1, 10**20, 0.5, "text", [], {}, [[1]], {"kind": "tuple", "is": []}]
    rng = np.random.default_rng(0)
    tried = refused = 0
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
        is_option = path[:1] in (["parameters"], ["graph"], ["choice"])
        was_refused = is_refused_or_loads(with_new_digests(changed, arrays), tmp_path / "m.castle", which, is_option)
        tried, refused = tried + 1, refused + was_refused
    assert tried > 50
    assert refused > tried / 2


def is_refused_or_loads(content: bytes, path: Path, which: str, harmless: bool) -> bool:
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
def test_arrays_of_another_shape_dtype_or_name_are_refused(which: str, files: dict[str, bytes], tmp_path: Path) -> None:
    model, arrays = pieces_of(files[which])
    for name, array in list(arrays.items())[:: 1 if which == "CastleRegressor" else 2]:
        others: dict[str, Any] = {
            "missing": {key: one for key, one in arrays.items() if key != name},
            "renamed": {(f"{name}x" if key == name else key): one for key, one in arrays.items()},
        }
        if not name.startswith("values/"):  # of folds and results, which can be of any length
            others["longer"] = {**arrays, name: np.concatenate([array, array])}
            others["deeper"] = {**arrays, name: array[None]}
            others["empty"] = {**arrays, name: array[:0]}
        if not name.startswith(("values/", "history/")):
            others["dtype"] = {**arrays, name: array.astype(np.float16)}
        for what, changed in others.items():
            assert is_refused(with_new_digests(model, changed), tmp_path / "m", which), (name, what)
    assert is_refused(with_new_digests(model, {**arrays, "more": np.zeros(3)}), tmp_path / "m", which)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value: float, files: dict[str, bytes], tmp_path: Path) -> None:
    for which in WHICH:
        model, arrays = pieces_of(files[which])
        for name in arrays:
            if name.startswith(("networks/", "columns/", "targets/")) or name == "graph/weights":
                changed = arrays[name].copy()
                changed.flat[0] = value
                assert is_refused(with_new_digests(model, {**arrays, name: changed}), tmp_path / "m", which), name


def edited(files: dict[str, bytes], which: str, edit: Callable[[Any, Any], None]) -> bytes:
    model, arrays = pieces_of(files[which])
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(model, arrays)
    return with_new_digests(model, arrays)


def _cycle(model: Any, arrays: Any) -> None:
    arrays["graph/weights"][:] = 1.0


def _swap_classes(model: Any, arrays: Any) -> None:
    name = model["coding"]["targets"][0]["classes"]["is"]
    arrays[name] = arrays[name][::-1].copy()


SENSELESS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "another estimator": ("CastleRegressor", lambda m, a: m.update(estimator="Ridge")),
    "an estimator of classes": ("CastleRegressor", lambda m, a: m.update(estimator="CastleClassifier")),
    "an option too many": ("CastleRegressor", lambda m, a: m["parameters"].update(evil=1)),
    "an order that is none": ("CastleRegressor", lambda m, a: m["coding"].update(order=[0, 0, 1])),
    "no columns": ("CastleRegressor", lambda m, a: m["coding"].update(columns=[], order=[])),
    "no targets": ("CastleRegressor", lambda m, a: m["coding"].update(targets=[])),
    "a graph with a cycle": ("CastleRegressor", _cycle),
    "negative weights of edges": ("CastleRegressor", lambda m, a: a["graph/learned_weights"].__imul__(-1)),
    "a confidence above one": ("CastleRegressor", lambda m, a: a["graph/confidence"].__iadd__(5)),
    "a graph with other names": ("CastleRegressor", lambda m, a: m["graph"].update(names=["a", "a", "b", "c"])),
    "no graph": ("CastleRegressor", lambda m, a: m.update(graph=None)),
    "spreads of zero": ("CastleRegressor", lambda m, a: a["columns/spread"].__imul__(0)),
    "no networks": ("CastleRegressor", lambda m, a: m["networks"].update(members=0)),
    "many hidden layers": ("CastleRegressor", lambda m, a: m["networks"].update(hidden_layers=10**9)),
    "a choice of a plain model": ("CastleRegressor", lambda m, a: m.update(choice={})),
    "an infinite loss": ("CastleRegressor", lambda m, a: m.update(validation_loss=1e999)),
    "a level twice": ("CastleClassifierCV", lambda m, a: m["coding"]["columns"][3].update(levels=["x", "x", "x"])),
    "fewer levels": ("CastleClassifierCV", lambda m, a: m["coding"]["columns"][3]["levels"].pop()),
    "levels that are lists": ("CastleClassifierCV", lambda m, a: m["coding"]["columns"][3].update(levels=[[], [1]])),
    "gaps that were none": ("CastleClassifierCV", lambda m, a: m["coding"]["columns"][3].update(missing=0)),
    "classes out of order": ("CastleClassifierCV", _swap_classes),
    "no choice": ("CastleClassifierCV", lambda m, a: m.update(choice=None)),
    "fewer seeds than folds": ("CastleClassifierCV", lambda m, a: m["choice"]["fold_seeds"].pop()),
    "fewer left-out rows than folds": ("CastleClassifierCV", lambda m, a: m["choice"]["left_out"].pop()),
    "folds that are none": ("CastleClassifierCV", lambda m, a: m["choice"].update(folds=[1, 2])),
    "no clipping": ("CastleClassifierCV", lambda m, a: m["coding"].update(clipped=False)),
}


@pytest.mark.parametrize("what", SENSELESS)
def test_content_that_makes_no_sense_is_refused(what: str, files: dict[str, bytes], tmp_path: Path) -> None:
    which, edit = SENSELESS[what]
    assert is_refused(edited(files, which, edit), tmp_path / "m.castle", which)


def test_json_that_is_none_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    _, arrays = pieces_of(files["CastleRegressor"])
    for text in (
        b"",
        b"[]",
        b"null",
        b"NaN",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 5000,
        b'{"estimator": 1, "estimator": 2}',
    ):
        assert is_refused(with_new_digests(text, arrays), tmp_path / "m.castle", "CastleRegressor")


def _header(**tensors: Any) -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


SAFETENSORS = {
    "nothing": b"",
    "a huge header": struct.pack("<Q", 2**63) + b"{}",
    "no JSON": struct.pack("<Q", 4) + b"nope",
    "offsets outside": _header(a={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}),
    "offsets backwards": _header(a={"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}) + bytes(8),
    "overlapping": _header(
        a={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        b={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    )
    + bytes(8),
    "an overflowing shape": _header(a={"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]}) + bytes(8),
    "another dtype": _header(a={"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}) + bytes(8),
    "an unknown dtype": _header(a={"dtype": "OBJECT", "shape": [8], "data_offsets": [0, 8]}) + bytes(8),
}


@pytest.mark.parametrize("what", SAFETENSORS)
def test_arrays_that_are_no_safetensors_are_refused(what: str, files: dict[str, bytes], tmp_path: Path) -> None:
    model, _ = pieces_of(files["CastleRegressor"])
    assert is_refused(with_new_digests(model, SAFETENSORS[what]), tmp_path / "m.castle", "CastleRegressor")


# --- by intent: zips -------------------------------------------------------------------------------


def rezipped(content: bytes, change: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], Any]) -> bytes:
    """Write the members of a model anew, after a change."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = [(info, old.read(info)) for info in old.infolist()]
        comment = old.comment
    change(members)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        with zipfile.ZipFile(file, "w") as new:
            for info, piece in members:
                new.writestr(info, piece, info.compress_type)
            new.comment = comment
    return file.getvalue()


def _compressed(members: Any) -> None:
    members[2][0].compress_type = zipfile.ZIP_DEFLATED


def _bomb(members: Any) -> None:
    members[2] = (members[2][0], bytes(50_000_000))
    members[2][0].compress_type = zipfile.ZIP_DEFLATED


def _link(members: Any) -> None:
    members[1][0].external_attr = (stat.S_IFLNK | 0o777) << 16


def _renamed(name: str) -> Callable[[Any], None]:
    def change(members: Any) -> None:
        info = zipfile.ZipInfo("x")
        info.filename = name
        members.append((info, b"x"))

    return change


ZIPS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "compressed": ("compressed", _compressed),
    "a bomb": ("compressed", _bomb),
    "a link": ("link", _link),
    "a member twice": ("twice", lambda members: members.append(members[1])),
    "a member too many": ("does not belong", _renamed("more.json")),
    "a member too few": ("'arrays.safetensors' is missing", lambda members: members.pop()),
    "no manifest": ("'manifest.json' is missing", lambda members: members.pop(0)),
    "a path upwards": ("a path", _renamed("../evil.py")),
    "an absolute path": ("a path", _renamed("/etc/passwd")),
    "a path of Windows": ("a path", _renamed("..\\evil.py")),
    "a folder": ("a path", _renamed("folder/")),
    "a hidden end of a name": ("a path", _renamed("more\0.exe")),
    "thousands of members": ("more than any model", lambda members: [_renamed(str(i))(members) for i in range(3000)]),
    "another manifest": ("does not match its digest", lambda members: members.__setitem__(0, (members[0][0], b"{}"))),
    "another model": ("does not match its digest", lambda members: members.__setitem__(1, (members[1][0], b"{}"))),
    "a long manifest": ("no model's is that long", lambda m: m.__setitem__(0, (m[0][0], bytes(200_000)))),
}


@pytest.mark.parametrize("what", ZIPS)
def test_zips_that_castlereg_never_writes_are_refused(what: str, files: dict[str, bytes], tmp_path: Path) -> None:
    reason, change = ZIPS[what]
    path = tmp_path / "m.castle"
    path.write_bytes(rezipped(files["CastleRegressor"], change))
    with pytest.raises(ModelFileError, match=reason):
        castlereg.load(path)


def patched(content: bytes, offset_in_entry: int, value: bytes) -> bytes:
    """Change the first entry of the zip's directory."""
    place = content.index(b"PK\x01\x02") + offset_in_entry
    return content[:place] + value + content[place + len(value) :]


@pytest.mark.parametrize(
    ("reason", "offset", "value"),
    [
        ("encrypted", 8, struct.pack("<H", 1)),
        ("flags 0x8", 8, struct.pack("<H", 8)),
        ("compressed", 24, struct.pack("<L", 2**31)),
        ("more than the file has", 20, struct.pack("<2L", 2**31, 2**31)),
        ("no whole zip", 42, struct.pack("<L", 7)),
    ],
)
def test_records_that_lie_are_refused(
    reason: str, offset: int, value: bytes, files: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "m.castle"
    path.write_bytes(patched(files["CastleRegressor"], offset, value))
    with pytest.raises(ModelFileError, match=reason):
        castlereg.load(path)


def with_manifest(content: bytes, **fields: Any) -> bytes:
    """Change the manifest and its digest."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    manifest = json.dumps({**json.loads(members["manifest.json"]), **fields}).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        for name, piece in {**members, "manifest.json": manifest}.items():
            new.writestr(zipfile.ZipInfo(name), piece)
        new.comment = archive._COMMENT + archive._digest(manifest).encode()
    return file.getvalue()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2, "castlereg": "9.0", "more": 1}, r"format version 2, from castlereg 9.0.*; update castlereg"),
        ({"version": 0}, "format version 0, which never was"),
        ({"version": "1"}, "a str as 'version'"),
        ({"format": "a graph"}, "it holds 'a graph' and no model"),
        ({"more": 1}, "unknown field 'more'"),
        ({"pieces": {}}, "lacks 'arrays.safetensors'"),
        ({"pieces": []}, "a list as 'pieces'"),
    ],
)
def test_manifests_that_do_not_fit_are_refused(
    fields: dict[str, Any], message: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "m.castle"
    path.write_bytes(with_manifest(files["CastleRegressor"], **fields))
    with pytest.raises(ModelFileError, match=message):
        castlereg.load(path)


def test_what_is_no_model_at_all_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"PK", b"x" * 500, b"PK\x05\x06" + bytes(18), b"\x80\x05cos\nsystem\n(S'true'\ntR."):
        (tmp_path / "m.castle").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"give a file that castlereg\.save wrote"):
            castlereg.load(tmp_path / "m.castle")
    with pytest.raises(FileNotFoundError):
        castlereg.load(tmp_path / "nowhere.castle")
    with pytest.raises(ModelFileError, match="it is no file"):
        castlereg.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="it is no file"):
        castlereg.load(tmp_path / "pipe")
