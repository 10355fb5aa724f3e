# SPDX-License-Identifier: MIT
"""What README.md and the pages of tools/docs say is true: their programs build and run, their model compiles, their tables are
what the compiler does."""
import hashlib
import json
import re
import subprocess

import numpy
import pytest
import safetensors.numpy

from support import pages


def test_readme_is_short_and_begins_with_two_commands_and_three_languages():
    readme = pages.README.read_text()
    lines = readme.splitlines()
    assert len(lines) <= 150
    assert [line.split()[0] for line in lines if line.startswith("    ")][:2] == ["tools/demo", "tools/test"]
    first = "\n".join(lines[:40])
    assert [re.search(rf"^```{name} (.*\n)+?```$", first, re.MULTILINE) is not None for name in ("python", "c", "cpp")] == [True] * 3


@pytest.mark.parametrize("compiler", [["clang-19", "-std=gnu11"], ["gcc", "-std=c99"]])
def test_program_builds_without_warnings_and_reads_a_three(root, rnncc, compile, tmp_path, compiler):
    (tmp_path / "digit.c").write_text(pages.program("embedding", "digit.c"))
    done = rnncc(root / "models" / "digits_rnn.json", "--emit=h", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "digits_rnn.so").symlink_to(compile(root / "models" / "digits_rnn.json"))
    build = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{root}/runtime", "digit.c", "-o", "digit", "-ldl"],
                           cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert build.returncode == 0, build.stderr
    run = subprocess.run(["./digit"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout
    shares = [float(share) for share in re.findall(r"^\d: +([0-9.]+)%$", run.stdout, re.MULTILINE)]
    assert len(shares) == 10 and numpy.argmax(shares) == 3, run.stdout


def test_program_has_at_most_25_lines():
    assert len(pages.program("embedding", "digit.c").splitlines()) <= 25


def test_model_of_the_format_section_compiles_and_carries_its_state(rnncc, rnnrun, tmp_path):
    model = json.loads(pages.block("model-format", "json"))
    rng = numpy.random.default_rng(1)
    shapes = {"W": (1, 192, 40), "R": (1, 192, 64), "b": (1, 384)}
    data = safetensors.numpy.save({name: rng.uniform(-0.1, 0.1, shape).astype(numpy.float32)
                                   for name, shape in shapes.items()})
    model["weights"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    (tmp_path / model["weights"][0]["file"]).write_bytes(data)
    (tmp_path / "tagger.json").write_text(json.dumps(model))
    done = rnncc(tmp_path / "tagger.json", "-o", tmp_path / "tagger.so")
    assert done.returncode == 0, done.stderr
    done = rnnrun("inspect", tmp_path / "tagger.so")
    assert done.returncode == 0, done.stderr
    assert "h0" in done.stdout


def listed_steps():
    return re.findall(r"^\| `(\w+)` \| (.*) \|$", pages.text("architecture"), re.MULTILINE)


def test_pipeline_table_is_what_the_compiler_runs(root, rnncc, tmp_path):
    done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", "--time-passes")
    assert done.returncode == 0, done.stderr
    ran = re.findall(r"^ *[0-9.]+ ms +(\w+)", done.stderr, re.MULTILINE)
    assert [name for name, _ in listed_steps()] == ran


def test_pipeline_table_says_what_the_list_of_steps_says(rnncc):
    listed = rnncc("--dump-after=list").stdout
    assert listed_steps() == [tuple(line.split(maxsplit=1)) for line in listed.splitlines()]


def test_commands_and_files_that_they_name_exist(root):
    texts = [path.read_text() for path in pages.all_pages()]
    names = {name for text in texts for name in re.findall(r"`((?:compiler|runtime|templates|models|tests|tools)/[\w./]*)`", text)}
    assert len(names) > 20
    for name in names:
        assert (root / name).exists(), name
