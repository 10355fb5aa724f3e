# SPDX-License-Identifier: MIT
"""Static libraries: several models in one program, whose globals and headers do not clash."""
import json
import os
import subprocess

import numpy
import pytest

from support.emitted import run_module
from support.model_builder import Model

pytestmark = pytest.mark.optimised  # as what the fixtures compile

TARGET = "x86-64"
SIZE = 6

PROGRAM = """
#include <stdio.h>

%(includes)s

/* One run on 0, 1, 2, ...; prints the output in hexadecimal floats. */
static int run(const rnncc_api *api, size_t elements) {
  static float in[64], out[64];
  rnncc_model *model;
  rnncc_context *context;
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  if (!api || api->model_create(&options, &model, NULL) || api->context_create(model, NULL, 0, &context, NULL)) return 1;
  for (size_t i = 0; i < elements; i++) in[i] = (float)i;
  rnncc_tensor x = {.struct_size = sizeof(rnncc_tensor), .data = in, .bytes = sizeof in, .dtype = RNNCC_F32, .rank = 1, .shape = {(int64_t)elements}};
  rnncc_tensor y = {.struct_size = sizeof(rnncc_tensor), .data = out, .bytes = sizeof out, .dtype = RNNCC_F32};
  if (api->run(context, &x, 1, &y, 1)) return puts(api->last_error(context)), 1;
  printf("%%s", api->info->name);
  for (int64_t i = 0; i < y.shape[0]; i++) printf(" %%a", (double)out[i]);
  puts("");
  api->context_destroy(context);
  api->model_destroy(model);
  return 0;
}

int main(void) {
%(calls)s  return 0;
}
"""


def scaled(folder, factor, size):
    """A model of one file name, of those that an exporter all calls main_graph."""
    model = Model("main_graph")
    x = model.input("x", "f32", [size])
    model.output(model.node("Tanh", [model.node("Mul", [x, model.constant(numpy.full(size, factor, numpy.float32))])]))
    folder.mkdir()
    return model.write(folder).rename(folder.parent / f"{folder.name}.json")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: scaled(folder / name, factor, size)
            for name, factor, size in (("fifth", .2, SIZE), ("tenth", .1, SIZE + 1), ("3rd-part", 1 / 3, SIZE + 2))}


@pytest.fixture(scope="module")
def libraries(models, rnncc, tmp_path_factory):
    """A folder of libNAME.a and NAME.h, by the names that are made from the models' files, and two that are given: one is
    for several targets."""
    folder = tmp_path_factory.mktemp("libraries")
    for model in models.values():
        done = rnncc(model, "--static", f"--target={TARGET}", cwd=folder)
        assert done.returncode == 0, done.stderr
    done = rnncc(models["fifth"], "--static", f"--target={TARGET}", "--name=twin", "-o", folder / "libtwin.a")
    assert done.returncode == 0, done.stderr
    done = rnncc(models["tenth"], "--static", "--target=x86-64-v3,x86-64", "--name=several", "-o", folder / "libseveral.a")
    assert done.returncode == 0, done.stderr
    return folder


NAMES = {"fifth": "fifth", "tenth": "tenth", "model_3rd_part": "3rd-part", "twin": "fifth", "several": "tenth"}


def test_a_library_and_a_header_for_each_name(libraries):
    assert sorted(path.name for path in libraries.iterdir()) == sorted(
        file for name in NAMES for file in (f"lib{name}.a", f"{name}.h"))


@pytest.mark.parametrize("name", NAMES)
def test_all_globals_begin_with_the_name(libraries, name):
    """All that the object defines: nothing is common, weak, or of another name."""
    lines = subprocess.run(["nm", "-g", "--defined-only", libraries / f"lib{name}.a"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    found = [line.split()[-1] for line in lines if len(line.split()) == 3]
    assert f"{name}_module_query" in found and [symbol for symbol in found if not symbol.startswith(f"{name}_")] == []


@pytest.mark.parametrize("compiler", [["clang-19", "-fuse-ld=lld"], ["gcc", "-O2"]], ids=lambda words: words[0])
def test_several_models_in_one_program(libraries, models, root, compile, tmp_path, compiler):
    program = PROGRAM % {
        "includes": "\n".join(f'#include "{name}.h"' for name in NAMES),
        "calls": "".join(f"  if (run({name}_module_query(RNNCC_ABI, NULL), {name}_INPUT_x_MAX_BYTES / 4)) return 1;\n"
                         for name in NAMES)}
    (tmp_path / "program.c").write_text(program)
    subprocess.run([*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{root}/runtime", f"-I{libraries}", "program.c",
                    *(libraries / f"lib{name}.a" for name in NAMES), "-pthread", "-o", "program"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "RNNCC_ISA": "plain"}).stdout.splitlines()
    assert len(said) == len(NAMES)
    for line, stem in zip(said, NAMES.values()):
        name, *values = line.split()
        model = models[stem]
        (size,) = json.loads(model.read_text())["inputs"][0]["shape"]
        (expected,) = run_module(compile(model, f"--target={TARGET}"),
                                 {"x": numpy.arange(size, dtype=numpy.float32)}).values()
        assert name == "main_graph"
        assert [float.fromhex(value) for value in values] == expected.tolist()


def test_headers_are_for_cplusplus_too(libraries, root, tmp_path):
    (tmp_path / "both.cpp").write_text('#include "fifth.h"\n#include "tenth.h"\n'
                                       "const rnncc_api *const apis[] = {fifth_module_query(RNNCC_ABI, nullptr),\n"
                                       "                                 tenth_module_query(RNNCC_ABI, nullptr)};\n")
    subprocess.run(["clang-19", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{root}/runtime", f"-I{libraries}",
                    "both.cpp"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("compiler", ["clang-19", "gcc"])
def test_headers_of_one_name_are_one_model_or_an_error(models, rnncc, root, tmp_path, compiler):
    """Exporters call all files model.onnx: the second header was left out without a word."""
    for header, model in (("a.h", "fifth"), ("again.h", "fifth"), ("b.h", "tenth")):
        done = rnncc(models[model], "--emit=h", "--name=main_graph", f"--target={TARGET}", "-o", tmp_path / header)
        assert done.returncode == 0, done.stderr

    def compiled(*headers):
        (tmp_path / "all.c").write_text("".join(f'#include "{header}"\n' for header in headers))
        return subprocess.run([compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{root}/runtime", "all.c"],
                              cwd=tmp_path, capture_output=True, text=True)

    same, other = compiled("a.h", "again.h"), compiled("a.h", "b.h")
    assert (same.returncode, same.stderr) == (0, "")
    assert other.returncode and "another model's header has the name main_graph, too" in other.stderr


def test_the_same_input_gives_the_same_library(models, libraries, rnncc, tmp_path):
    done = rnncc(models["tenth"].name, "--static", f"--target={TARGET}", "-o", tmp_path / "other.a", cwd=models["tenth"].parent)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "other.a").read_bytes() == (libraries / "libtenth.a").read_bytes()
    assert (tmp_path / "tenth.h").read_bytes() == (libraries / "tenth.h").read_bytes()


@pytest.mark.parametrize("words, message", [
    (["--name=1st", "--static"], "--name: expected an identifier of C"),
    (["--name=", "--static"], "--name: expected an identifier of C"),
    (["--name=a"], "--name goes with --static, --emit=h, --emit=c and --emit=wheel"),
    (["--static", "--emit=h"], "--static goes with no --emit but so"),
    (["--static", "-o", "-"], "only --emit=h and --emit=dot go to stdout")])
def test_what_goes_together(models, rnncc, words, message):
    done = rnncc(models["fifth"], *words)
    assert done.returncode == 2 and message in done.stderr
