"""What is detected of text files, and what is said of lines and names that are wrong."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from castlereg.table.byte_streams import ByteSource
from castlereg.table.text_format import SEPARATORS, WHITESPACE, TextFormat, detect

ALL = (*SEPARATORS, WHITESPACE)


def detected(content: str | bytes, **given: str | None) -> TextFormat:
    source = ByteSource(Path("-"), content=content if isinstance(content, bytes) else content.encode())
    return detect(source, ALL, **given)


@pytest.mark.parametrize("content", ["\t\n\t\n", " \n\t \n", '""\n'])
def test_blank_lines_are_not_a_table(content: str) -> None:
    with pytest.raises(ValueError, match="cannot be read as a table"):
        detected(content)


@pytest.mark.parametrize(
    ("content", "names", "separator"),
    [
        ("a,b\n1,2\n", "a b", ","),
        ("a;b\n1,5;2,5\n", "a b", ";"),
        ('a,b\n"x;y",1\n"z;u",2\n', "a b", ","),
        ("a, EUR;b\n1,5;2\n", "a, EUR|b", ";"),
        ('"a;b",c\n1,2\n', "a;b|c", ","),
        ("first a,last b\nx y,z w\n", "first a|last b", ","),  # more columns of words, but not all fit
        ("  a   b\n  1   x\n 10   y\n", "a b", WHITESPACE),
        ("a\n1,5\n2,5\n", "a", ";"),  # one column of decimal commas
        ("a\nx\ny\n", "a", ","),
        ("\n\na,b\n\n1,2\n", "a b", ","),
        ("a,b\r1,2\r", "a b", ","),
        ('a,b\r\n"x\r\ny",2\r\n', "a b", ","),
        ("a\tb\n1\t2\n\t\n", "a b", "\t"),  # a row of missing values
        ("0,1,2\n5,6,7\n", "0 1 2", ","),  # pandas' names of an array's columns
    ],
)
def test_separators(content: str, names: str, separator: str) -> None:
    text = detected(content)
    assert text.names == tuple(names.split("|" if "|" in names else " "))
    assert text.separator == separator


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_longer_than_the_sample(end: str) -> None:
    names = [f"column number {j}" for j in range(8000)]
    assert detected(",".join(names) + end + ",".join(["1"] * 8000) + end).names == tuple(names)
    long = '"' + f"word{end}" * 15_000 + '"'
    assert detected(f"a;b;c{end}{long};2,5;x{end}").decimal == ","  # a first row of lines
    cells = f'"word{end}word";2,5{end}' * 10_000
    assert detected(f"a;b{end}{cells}").decimal == ","
    assert detected(f"{long};b{end}1;2{end}").names[1] == "b"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
    ],
)
def test_encodings(encoding: str, expected: str) -> None:
    text = detected("é;b\n1;2\n".encode(encoding))
    assert text.names == ("é", "b")
    assert text.encoding == expected


@pytest.mark.parametrize(("extra", "expected"), [("", "Windows-1252"), ("\x81", "Latin-1")])
def test_what_is_not_utf8_is_noted(extra: str, expected: str) -> None:
    late = ("a,b\n" + "1,x\n" * 30_000 + f"1,é{extra}\n").encode("latin-1")
    with pytest.warns(UserWarning, match=f"is not UTF-8 and was read as {expected}: pass its encoding"):
        assert detected(late).names == ("a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detected(late, encoding="latin-1")


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        # Separators and lines.
        ("a,b\n1,2\n3\n", {}, "line 3 of .* has 1 value, but the header has 2 names: correct the line"),
        ("a,b\n1,2\n3,4,5\n", {}, "line 3 of .* has 3 values, but the header has 2 names.* text that contains commas"),
        ('a,b\n"x\ny",2\n3,4\n5,6,7\n', {}, "line 5 of .* has 3 values"),
        ("My report\n\na,b\n1,2\n3,4\n", {}, "line 1 of .* has 1 name, but line 3 has 2 values.*delete titles"),
        ("# made today\na;b\n1;2\n3;4\n", {}, "line 1 of .* has 1 name, but line 2 has 2 values between semicolons"),
        ("a b\n1 5 6\n2 7 8\n", {}, "line 1 of .* has 2 names, but line 2 has 3 values between spaces"),
        ("a,b\n1,2,\n3,4,\n", {}, "line 1 of .* has 2 names, but line 2 has 3 values"),
        ("title,,,\na,b,c,d\n1,2,3,4\n", {}, "line 1 of .* names 1 of 4 columns"),
        ("sep=;\na;b\n1;2\n", {}, "is a 'sep=' line"),
        ("a,b\n1,2\n", {"separator": ";"}, "separator=';' is not in line 1 of .*, which has commas"),
        ("a,b\n1,2\n", {"separator": "::"}, "must be one character"),
        ("a,b\n1,2\n", {"separator": "a"}, "must be one character"),
        ("a,b\n" + '1,"' + "x" * 200_000, {}, "check for an unclosed quote"),
        # Names.
        ("1,2.5\n3,4\n", {}, r"line 1 of .* has only numbers \(1, 2.5\): add a first line"),
        ("a,b,a\n1,2,3\n", {}, r"has 2 columns named 'a' \(1 and 3\): rename them in line 1"),
        # Decimal marks.
        ("a;b\n1,5;1.5\n", {}, "'1.5' in column 'b' of line 2 and '1,5' in column 'a' of line 2: pass decimal"),
        ("a;b\n1,234;x\n", {}, "'1,234' in column 'a' of line 2, which may have decimals .*: pass decimal"),
        ("a;b\n1.234;x\n", {}, "'1.234' in column 'a' of line 2, which may have decimals .*: pass decimal"),
        ("a;b\n1.5;x\n", {"decimal": ","}, "decimal=',' is not the decimal mark of .*, which has '1.5'"),
        ("a;b\n1.5;x\n", {"decimal": "'"}, "must be '.' or ','"),
        ("a,b\n1,2\n", {"decimal": ",", "separator": ","}, "cannot both be ','"),
        # Encodings.
        ("a,é\n1,2\n".encode("latin-1"), {"encoding": "utf-8"}, r"is not valid utf-8 \(.*\): pass another encoding"),
        ("a,é\n1,2\n".encode("utf-16"), {"encoding": "latin-1"}, "has the byte order mark of utf-16"),
        (b"\xef\xbb\xbfa,\xe9\n1,2\n", {}, r"is not valid utf-8-sig \(.*\): save it again in a single encoding"),
        ("a,é\n1,2\n".encode("utf-16-le"), {}, "is not text: byte 1 is 0x00.* pass encoding='utf-16-le'"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, "encoding='klingon' is unknown"),
        ("a,b\n1,2\n", {"encoding": "base64"}, "encoding='base64' is unknown"),
    ],
)
def test_errors_say_where_and_what_to_do(content: str | bytes, given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        detected(content, **given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("separator", ["\t", r"\t"])
def test_given_options_win(separator: str) -> None:
    assert detected("a,b\tc\n1,2\t3\n", separator=separator).names == ("a,b", "c")
    assert detected("a  b\n1  2\n", separator=" ").names == ("a", "b")
    assert detected("é,b\n1,2\n".encode("cp1250"), encoding="cp1250").names == ("é", "b")
    assert detected("é,b\n1,2\n".encode("utf-16-le"), encoding="utf-16-le").names == ("é", "b")
