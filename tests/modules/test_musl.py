# SPDX-License-Identifier: MIT
"""Modules, C and static libraries for programs of musl; these load the modules of glibc's targets, too, as the symbols
that they take are of both."""
import re
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.amount import some
from support.emitted import run_by
from support.installed import output
from support.machine import need_libc, need_program
from support.targets import FOREIGN

MODEL = ROOT / "models" / "digits_rnn.json"
IMAGES = numpy.random.default_rng(7).random((3, 8, 8), dtype=numpy.float32)
FLOOR = (2, 17)  # of glibc's versions
TRIPLES = ["x86_64-linux-musl", "aarch64-linux-musl"]


def with_glibc(target):
    if target.startswith("aarch64"):
        return target.replace("-musl", "-gnu")
    return target.removesuffix("-linux-musl").replace("x86_64", "x86-64")


def probabilities(rnnrun, module, folder):
    (array,) = run_by(rnnrun, module, {"x": IMAGES}, ["probabilities"], folder).values()
    return array


@pytest.mark.parametrize("triple", TRIPLES)
def test_a_module_of_glibcs_target_runs_in_a_program_of_musl(triple, rnnrun, rnnrun_of, compile, tmp_path):
    target = with_glibc(triple)
    module, by_musl = compile(MODEL, f"--target={target}"), rnnrun_of(triple)
    by_glibc = rnnrun if target == "x86-64" else rnnrun_of(target)
    assert probabilities(by_musl, module, tmp_path).tolist() == probabilities(by_glibc, module, tmp_path).tolist()


@pytest.mark.parametrize("target", [target for target in FOREIGN if "musl" in target])
def test_the_kernels_are_those_with_glibc(target, rnncc, tmp_path):
    """By the same records, too."""
    need_libc(FOREIGN[target][0])
    texts = []
    for number, name in enumerate([target, with_glibc(target)]):
        done = rnncc(MODEL, f"--target={name}", "--emit=c", "-o", tmp_path / str(number))
        assert done.returncode == 0, done.stderr
        makefile = (tmp_path / str(number) / "Makefile").read_text()
        text = (tmp_path / str(number) / "network.c").read_text()
        text = re.sub(r'"\n\s*"', "", text).replace(name, "TARGET")  # strings on one line, whatever their lengths
        texts.append((re.sub(r"text\[\d+\];", "text[];", text),  # of the note, which names the target
                      re.findall("^(?:KERNEL|RUNTIME)_FLAGS.*$", makefile, re.MULTILINE)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", TRIPLES)
def test_a_module_needs_musl_alone(target, rnncc, tmp_path):
    need_libc(target)
    done = rnncc(MODEL, f"--target={target}", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", tmp_path / "m.so")) == ["libc.so"]
    assert [line.split()[-1] for line in output("nm", "-D", "--defined-only", tmp_path / "m.so").splitlines()] == ["rnncc_module_query"]
    wanted = {line.split()[-1] for line in output("nm", "-D", "--undefined-only", tmp_path / "m.so").splitlines()}
    assert "pthread_create" in wanted and not any("@" in name for name in wanted), "musl has no versions"


@pytest.mark.unsanitized
@pytest.mark.parametrize("compiler", some(["x86_64-linux-musl-gcc", "clang-19"], 1))
def test_emitted_c_builds_with_musl(compiler, rnncc, rnnrun_of, compile, tmp_path):
    rnnrun = rnnrun_of("x86_64-linux-musl")
    need_program(compiler)
    done = rnncc(MODEL, "--target=x86_64-linux-musl", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    built = subprocess.run(["make", "-s", f"CC={compiler} -Wall -Wextra -Werror"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")
    got = probabilities(rnnrun, tmp_path / "c" / "module.so", tmp_path)
    expected = probabilities(rnnrun, compile(MODEL, "--target=x86_64-linux-musl"), tmp_path)
    assert numpy.abs(got - expected).max() <= 2**-23, "compilers differ in where a product and a sum become one operation"


PROGRAM = """
#include <stdio.h>

#include "digits_rnn.h"

int main(void) {
  static float images[3][8][8], probabilities[3][10];
  const rnncc_api *api = digits_rnn_module_query(RNNCC_ABI, NULL);
  rnncc_model *model;
  rnncc_context *context;
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  if (!api || api->model_create(&options, &model, NULL) || api->context_create(model, NULL, 0, &context, NULL)) return 1;
  if (fread(images, sizeof images, 1, stdin) != 1) return 2;
  rnncc_tensor x = {.struct_size = sizeof x, .data = images, .bytes = sizeof images, .dtype = RNNCC_F32, .rank = 3,
                    .shape = {3, 8, 8}};
  rnncc_tensor y = {.struct_size = sizeof(rnncc_tensor), .data = probabilities, .bytes = sizeof probabilities, .dtype = RNNCC_F32};
  if (api->run(context, &x, 1, &y, 1)) return 3;
  api->context_destroy(context);
  api->model_destroy(model);
  return fwrite(probabilities, sizeof probabilities, 1, stdout) != 1;
}
"""


@pytest.mark.parametrize("target", ["x86_64-linux-musl", "x86-64"])
def test_a_library_links_into_a_static_program_of_musl(target, rnncc, rnnrun_of, compile, tmp_path):
    """Of glibc's target, too."""
    need_program("x86_64-linux-musl-gcc")
    done = rnncc(MODEL, f"--target={target}", "--static", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["x86_64-linux-musl-gcc", "-static", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/runtime", "-I.", "program.c",
                    "libdigits_rnn.a", "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program"], input=IMAGES.tobytes(), capture_output=True, timeout=60)
    assert done.returncode == 0
    expected = probabilities(rnnrun_of("x86_64-linux-musl"), compile(MODEL, "--target=x86_64-linux-musl"), tmp_path)
    assert numpy.frombuffer(done.stdout, numpy.float32).tolist() == expected.ravel().tolist()


def test_missing_headers_are_named(rnncc, tmp_path):
    """Debian 12 has no musl for riscv64."""
    done = rnncc(MODEL, "--target=riscv64-linux-musl", "-o", tmp_path / "m.so")
    folder = "/usr/include/riscv64-linux-musl"
    assert done.returncode == 5 and f"{folder}: error: expected musl's headers, found none; install them (Debian: " in done.stderr


def names_of_glibc():
    """Of what a program finds in glibc, each name with the first version that it was in."""
    first = {}
    for line in output("nm", "-D", "--defined-only", "/lib/x86_64-linux-gnu/libc.so.6").splitlines():
        name, _, version = line.split()[-1].replace("@@", "@").partition("@GLIBC_")
        if version[:1].isdigit():
            numbers = tuple(int(part) for part in version.split("."))
            first[name] = min(numbers, first.get(name, numbers))
    return first


def names_of_musl():
    return {line.split()[-1] for line in output("nm", "-D", "--defined-only", "/usr/lib/x86_64-linux-musl/libc.so").splitlines()}


@pytest.mark.parametrize("kind", ["module", "static"])
def test_no_symbol_is_of_one_libc_alone(kind, rnncc, compile, tmp_path):
    """Nor of glibc after 2.17."""
    need_libc("x86_64-linux-musl")
    if kind == "module":
        lines = output("nm", "-D", "--undefined-only", compile(MODEL, "--target=x86-64"))
    else:
        done = rnncc(MODEL, "--static", "--target=x86-64", "-o", tmp_path / "libm.a")
        assert done.returncode == 0, done.stderr
        lines = output("nm", "--undefined-only", tmp_path / "libm.a")
    wanted = {line.split()[-1].partition("@")[0] for line in lines.splitlines() if " U " in line}
    assert "pthread_create" in wanted
    assert wanted - names_of_musl() == set()
    glibc = names_of_glibc()
    assert {name for name in wanted if glibc.get(name, (99,)) > FLOOR} == set()
