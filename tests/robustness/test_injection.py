# SPDX-License-Identifier: MIT
"""Names and paths are data: no text of the model or the command line becomes code, a command, or an escape sequence."""
import json
import re

import pytest

from support.refusal import GOOD_WEIGHTS, accepted, refused, small_model, with_weights, write

NAMES = {
    "a statement": 'x;system("id");//',
    "end of comment": "*/ int main(void) { return 1; } /*",
    "start of comment": "/*",
    "quotes": '"\'`',
    "backslashes": "\\\\\\",
    "backslash at the end": "x\\",
    "newline": "x\n#error line",
    "carriage return": "x\r\n#error line",
    "format directives": "%n%s%99999d",
    "trigraphs": "??/\n??=error ??'??(",
    "a keyword": "int",
    "a name of ours": "t0",
    "a directive": "#include </etc/passwd>",
    "terminal escapes": "\x1b[2J\x1b]0;title\x07",
    "not ASCII": "naïve 名前 \U0001f600",
    "right to left": "\u202ereversed",
    "shell": "$(touch pwned) `touch pwned` ; touch pwned & | >pwned",
    "make": "$(shell touch pwned)",
    "assembler": '.incbin "/etc/passwd"',
    "spaces": "  ",
    "a megabyte": "n" * 1_000_000,
}
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s+"(?:[^"\\\n]|\\.)*")*')  # with its continuations
NOTE_BYTES = re.compile(r"\btext\[\d+\]")  # the names are in it
HASH = re.compile(r"\b[0-9a-f]{64}\b")


def renamed(name):
    """The small model with every name in it replaced by one that begins with `name`."""
    text = json.dumps(small_model())
    for old in ("small", "x", "s", "y", "c", "T", "add", "relu"):
        text = text.replace(f'"{old}"', json.dumps(f"{name}{old}"))
    return text


def c_text(rnncc, folder, model):
    done = rnncc(write(folder, model), "--emit=c", "--target=x86-64-v3", "-o", folder / "c", timeout=300)
    assert done.returncode == 0, done.stderr[:2000]
    return (folder / "c" / "network.c").read_text()


def without_names(text):
    return NOTE_BYTES.sub("text[]", HASH.sub("HASH", STRING.sub('""', text)))


@pytest.fixture(scope="module")
def plain(rnncc, tmp_path_factory):
    """The text of the small model as it is."""
    return without_names(c_text(rnncc, tmp_path_factory.mktemp("plain"), small_model()))


@pytest.mark.parametrize("name", NAMES)
def test_names_change_nothing_in_the_c_text_but_the_name_tables(rnncc, plain, tmp_path, name):
    evil = c_text(rnncc, tmp_path, renamed(NAMES[name]))
    assert evil.isascii()
    assert without_names(evil) == plain


@pytest.mark.parametrize("name", [name for name in NAMES if name != "a megabyte"])
def test_names_survive_being_written_as_a_model(rnncc, tmp_path, name):
    written = accepted(rnncc, tmp_path, renamed(NAMES[name]))
    assert written["inputs"][0]["name"] == NAMES[name] + "x"
    assert written["nodes"][1]["name"] == NAMES[name] + "relu"


@pytest.mark.parametrize("name", NAMES)
def test_names_in_messages_are_escaped_and_short(rnncc, tmp_path, name):
    """`refused` looks for control characters."""
    model = json.loads(renamed(NAMES[name]))
    model["nodes"][1]["inputs"] = [NAMES[name] + "nowhere"]
    said = refused(rnncc, tmp_path, model, 2, "nothing produces the tensor")
    assert len(said) < 1000


def test_an_operator_of_a_megabyte_is_refused_in_short(rnncc, tmp_path):
    model = small_model()
    model["nodes"][0]["op"] = "A" * 1_000_000
    assert len(refused(rnncc, tmp_path, model, 3, "... (1000000 bytes)")) < 1000


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_of_any_name_is_refused_in_short(rnncc, tmp_path, name):
    model = small_model()
    model["nodes"][1]["attributes"] = {NAMES[name]: 1}
    assert len(refused(rnncc, tmp_path, model, 3, "nodes[1].attributes")) < 4000


@pytest.mark.parametrize("folder", ["$(touch pwned)", "a b", "-o", "new\nline", "'\"\\", "--emit=c", "%n", "$$", "#", "é"])
def test_paths_are_never_a_shells(rnncc, tmp_path, folder):
    home = tmp_path / folder
    home.mkdir()
    (home / "w.safetensors").write_bytes(GOOD_WEIGHTS)
    write(home, with_weights(), f"{folder}.json")
    done = rnncc(f"./{folder}/{folder}.json", "-o", f"./{folder}/{folder}.so", cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (home / f"{folder}.so").read_bytes()[:4] == b"\x7fELF"
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder]
    assert len(list(home.iterdir())) == 3


def test_a_path_that_starts_with_a_dash_follows_two_dashes(rnncc, tmp_path):
    write(tmp_path, small_model(), "-v.json")
    done = rnncc("--emit=graph", "-o", "-o.json", "--", "-v.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "-o.json").read_text())["name"] == "small"
