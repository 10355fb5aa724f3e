# SPDX-License-Identifier: MIT
"""The folder of --emit=c builds with no rnncc at hand: by its Makefile or its CMakeLists.txt, with clang or gcc, as C11
without a warning, for each target; whatever builds it, the module computes the same."""
import itertools
import re
import subprocess

import ml_dtypes
import numpy
import pytest

from conftest import ROOT
from support.amount import long_tests, some
from support.machine import OF_TARGET, need_program
from support.model_builder import Model

pytestmark = [pytest.mark.optimised, pytest.mark.unsanitized]  # it is about compilers

STRICT = "-Wall -Wextra -Werror"
ONE_ROUNDING = 2**-23  # of the largest result: compilers differ in where a product and a sum become one operation

BUILDS = [(model, tool, compiler) for model in ("digits_rnn", "digits_cnn", "hyphenate") for tool in ("make", "cmake")
          for compiler in ("clang-19", "gcc")]
SOME = [("digits_rnn", "make", "gcc"), ("digits_cnn", "cmake", "clang-19")]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def emitted(rnncc, tmp_path):
    """emitted(model, *options) -> the folder."""

    def folder(model, *options):
        done = rnncc(ROOT / "models" / f"{model}.json", "--emit=c", "-o", tmp_path / "c", *options)
        assert done.returncode == 0, done.stderr
        return tmp_path / "c"

    return folder


def built(folder, tool, compiler, target="module"):
    if tool == "make":
        run("make", "-s", "-j2", f"CC={compiler} {STRICT}", cwd=folder)
        return folder / "module.so"
    run("cmake", "-B", folder / "build", f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={STRICT}", cwd=folder)
    run("cmake", "--build", folder / "build", "--parallel", 2, "--target", target, cwd=folder)
    return folder / "build" / "module.so"


@pytest.mark.parametrize("options", [[], ["-DRNNCC_TRAINS", "-DRNNCC_MUTABLE"]], ids=["", "changing weights"])
def test_each_file_of_the_runtime_is_c_for_gcc(options):
    """Also what clang's headers include of others."""
    run("gcc", "-std=gnu11", "-D_GNU_SOURCE", *options, "-fsyntax-only", *STRICT.split(), *sorted((ROOT / "runtime").glob("*.c")))


def test_clang_reads_the_intrinsics_of_the_target_alone(emitted):
    """All of them take it half a second, most of what a small network does."""
    folder = emitted("digits_rnn", "--target=x86-64-v3")
    text = (folder / "Makefile").read_text()
    flags = [word for name in ("KERNEL_FLAGS", "CLANG_FLAGS") for word in re.search(f"^{name} = (.*)$", text, re.M)[1].split()]
    read = run("clang-19", *flags, "-I.", "-E", "network.c", cwd=folder)
    assert "_mm256_fmadd_ps" in read and "_mm512" not in read


def results(rnnrun, module, folder):
    names = re.findall(r"^(input|output)\s+(\S+)", rnnrun("inspect", module).stdout, re.MULTILINE)
    words = [word for kind, name in names if kind == "input" for word in ("--input", f"{name}=random")]
    outputs = [name for kind, name in names if kind == "output"]
    for name in outputs:
        words += ["--output", f"{name}=@{folder}/{name}.npy"]
    done = rnnrun("run", module, *words)
    assert done.returncode == 0, done.stderr
    return {name: numpy.load(folder / f"{name}.npy") for name in outputs}


@pytest.mark.parametrize("model, tool, compiler", BUILDS if long_tests() else SOME)
def test_it_builds_to_the_same_results(emitted, compile, rnnrun, tmp_path, model, tool, compiler):
    expected = results(rnnrun, compile(ROOT / "models" / f"{model}.json"), tmp_path)
    got = results(rnnrun, built(emitted(model), tool, compiler), tmp_path)
    for name, array in expected.items():
        if compiler.startswith("clang"):
            assert numpy.array_equal(got[name], array), name
        else:
            assert numpy.abs(got[name] - array).max() <= ONE_ROUNDING * numpy.abs(array).max(), name


# ---- each target ----

OF_AARCH64 = ["dotprod", "fp16", "bf16", "i8mm"]
FEATURES = {"x86-64-v4": ["vnni", "bf16", "amx"], "x86-64-v3": ["vnni"],
            **{target: OF_AARCH64 for target in OF_TARGET if target.startswith("aarch64")}}
PORTABLE = some(["i686-linux-gnu", "arm-linux-gnueabihf", "powerpc64le-linux-gnu"], 1)


def with_features(target):
    """With all that it takes; in long tests with each choice of them."""
    features = FEATURES.get(target, [])
    counts = range(len(features) + 1) if long_tests() else [len(features)]
    return [target + "".join(f"+{name}" for name in chosen) for count in counts for chosen in itertools.combinations(features, count)]


def test_these_are_the_features_of_each_target(rnncc):
    rows = [line.split() for line in rnncc("targets").stdout.split("\n\n")[0].splitlines()[1:]]
    assert {row[0]: found for row in rows if (found := [word[1:] for word in row[5:] if word.rfind("+") == 0])} == FEATURES


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """What instructions and types of some targets alone are for: bytes that are multiplied, f16, bf16; and a pool."""
    model, rng = Model("small"), numpy.random.default_rng(3)

    def weights(dtype, *shape):
        return model.constant(rng.integers(-4, 5, shape).astype(dtype))

    model.output(model.node("MatMulInteger", [model.input("rows", "u8", [5, 16]), weights(numpy.int8, 16, 9)]))
    model.output(model.node("MatMulInteger", [model.input("many", "u8", [40, 200]), weights(numpy.int8, 200, 99)]))
    model.output(model.node("ConvInteger", [model.input("image", "u8", [1, 16, 5, 5]), weights(numpy.int8, 16, 16, 3, 3)]))
    model.output(model.node("MaxPool", [model.input("plane", "f32", [1, 3, 9, 9])], kernel_shape=[3, 3], strides=[2, 2]))
    for name, dtype in (("f16", numpy.float16), ("bf16", ml_dtypes.bfloat16)):
        model.output(model.node("MatMul", [model.input(name, name, [3, 8]), weights(dtype, 8, 9)]))
    return model.write(tmp_path_factory.mktemp("small"))


def gcc_for(target):
    """gcc 12 has no RVV."""
    base = target.partition("+")[0]
    return None if "+rvv" in target else f"{'x86_64-linux-gnu' if base.startswith('x86-64') else base}-gcc"


@pytest.mark.every_case
@pytest.mark.parametrize("target", [*(name for row in OF_TARGET for name in with_features(row)), *PORTABLE])
def test_kernels_of_each_target_compile_without_a_warning(small, rnncc, tmp_path, target):
    done = rnncc(small, f"--target={target}", "--emit=c", "-o", tmp_path / "c")
    assert (done.returncode, done.stderr) == (0, "")
    run("make", "-s", f"CC=clang-19 -fsyntax-only {STRICT}", "network.o", cwd=tmp_path / "c")
    if gcc := gcc_for(target):
        need_program(gcc)
        run("make", "-s", f"CC={gcc} {STRICT}", "network.o", cwd=tmp_path / "c")


@pytest.mark.long
def test_it_builds_for_another_machine(emitted, rnncc, aarch64_rnnrun, tmp_path):
    """By Debian's cross compiler."""
    done = rnncc(ROOT / "models" / "digits_rnn.json", "--target=aarch64-linux-gnu", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    module = built(emitted("digits_rnn", "--target=aarch64-linux-gnu"), "make", "aarch64-linux-gnu-gcc")
    expected, got = results(aarch64_rnnrun, tmp_path / "m.so", tmp_path), results(aarch64_rnnrun, module, tmp_path)
    for name, array in expected.items():
        assert numpy.abs(got[name] - array).max() <= ONE_ROUNDING * numpy.abs(array).max(), name


@pytest.mark.parametrize("tool, compiler", [("make", "gcc"), pytest.param("cmake", "clang-19", marks=pytest.mark.long)])
def test_the_static_library_is_of_the_name(emitted, tool, compiler):
    folder = emitted("digits_rnn", "--name=reader", "--target=x86-64")
    if tool == "make":
        run("make", "-s", f"CC={compiler} {STRICT}", "libreader.a", cwd=folder)
    else:
        built(folder, tool, compiler, "reader_static")
        folder = folder / "build"
    names = re.findall(r" [A-Z] (\w+)$", run("nm", "-g", "--defined-only", folder / "libreader.a"), re.MULTILINE)
    assert "reader_module_query" in names and {name for name in names if not name.startswith("reader_")} == set()


def test_cmake_builds_it_in_a_folder_of_any_name(rnncc, tmp_path):
    """The assembler gets the folder, where weights are: its options end at a comma in some forms."""
    folder = tmp_path / "a, b"
    done = rnncc(ROOT / "models" / "digits_rnn.json", "--emit=c", "-o", folder, "--profile=edge", "--dim=B=1")
    assert done.returncode == 0, done.stderr
    built(folder, "cmake", "clang-19", "digits_rnn_static")
    assert (folder / "build" / "libdigits_rnn.a").exists()
