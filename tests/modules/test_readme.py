# SPDX-License-Identifier: MIT
"""The examples of README.md work: its program builds and reads the digit, its model compiles."""
import hashlib
import json
import re
import subprocess

import numpy
import pytest
import safetensors.numpy


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text()


def code_block(readme, language):
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return block


@pytest.mark.parametrize("compiler", [["clang-19", "-std=gnu11"], ["gcc", "-std=c99"]])
def test_program_builds_without_warnings_and_reads_a_three(readme, root, rnncc, compile, tmp_path, compiler):
    (tmp_path / "digit.c").write_text(code_block(readme, "c"))
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


def test_program_has_at_most_25_lines(readme):
    assert len(code_block(readme, "c").splitlines()) <= 25


def test_model_of_the_format_section_compiles_and_carries_its_state(readme, rnncc, rnnrun, tmp_path):
    model = json.loads(code_block(readme, "json"))
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


def steps_of(readme):
    return re.findall(r"^\| `(\w+)` \| (.*) \|$", readme, re.MULTILINE)


def test_pipeline_table_is_what_the_compiler_runs(readme, root, rnncc, tmp_path):
    done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", "--time-passes")
    assert done.returncode == 0, done.stderr
    ran = re.findall(r"^ *[0-9.]+ ms +(\w+)", done.stderr, re.MULTILINE)
    assert [name for name, _ in steps_of(readme)] == ran


def test_pipeline_table_says_what_the_list_of_steps_says(readme, rnncc):
    listed = rnncc("--dump-after=list").stdout
    assert steps_of(readme) == [tuple(line.split(maxsplit=1)) for line in listed.splitlines()]


def test_commands_and_files_it_names_exist(readme, root):
    names = set(re.findall(r"`((?:compiler|runtime|templates|models|tests|tools)/[\w./]*)`", readme))
    assert names
    for name in names:
        assert (root / name).exists(), name
