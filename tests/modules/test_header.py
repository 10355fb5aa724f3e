# SPDX-License-Identifier: MIT
"""`--emit=h`: what the header says is what the module says of itself, for C and C++, whatever names the model has."""
import ctypes
import re
import subprocess

import numpy
import pytest

from support.dtypes import DTYPES
from support.model_builder import Model
from support.module import Module

CODES = {f"RNNCC_{dtype.name.upper()}": dtype.code for dtype in DTYPES}
COMPILERS = {"gcc": ["gcc", "-std=c11"], "clang": ["clang-19", "-std=c11"], "g++": ["g++", "-std=c++17"],
             "clang++": ["clang++-19", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]

# What the model calls them, and what the header does.
INPUTS = {"x_1": "x_1", "x.1": "1", "x.2": "x_2", "int": "int", "70": "4", "größe": "gr____e", 'a*/"??/\\b': "a_______b",
          "x": "x", "x_RANK": "8", "x.EXTENT_0": "9", "1": "10", "/gru/Y": "_gru_Y", "y_MAX_BYTES": "y_MAX_BYTES", "template": "template"}
DIMS = {"T": "T", "s 17": "s_17", "and": "and", "T_MAX": "3", "data": "data", "64": "5", "bytes": "bytes", "int64_t": "int64_t",
        "M": "M", "M_MULTIPLE": "9"}
STEPS = {"M": 4}


def odd_model():
    """Each input's axes are two dims, one of them twice, and a constant; a state of each kind."""
    model = Model("odd-1")
    for i, name in enumerate(DIMS):
        step = STEPS.get(name, 1)
        model.dim(name, step * (1 + i), step * (2 + i), step * (10 + i), step)
    dims = list(DIMS)
    for i, name in enumerate(INPUTS):
        dtype = ("f32", "i64", "u8", "f16")[i % 4]
        first, second = dims[i % len(dims)], dims[(i + 1) % len(dims)]
        x = model.input(name, dtype, [first, 3, second, first][:1 + i % 4])
        model.output(model.node("Identity", [x], [f"y.{i}"]))
    model.constant(numpy.ones((1, 4), numpy.float32), "one")
    for name, shape in (("h.0", ["T", 4]), ("h_0", [1, 4])):
        model.state(name, model.node("Add", [name, "one"], [f"next.{name}"]), "f32", shape,
                    **({"batch_axis": 0} if shape[0] == "T" else {}))
    return model


def constants(header, folder, flags):
    """name -> what a compiler takes it for: an integer or a string."""
    names = dict.fromkeys(re.findall(r"^(?:  |#define )(\w+)(?: =| (?!0x))", header.read_text(), re.MULTILINE))
    names = [name for name in names if not name.endswith("_TENSOR")]
    lines = [f'  printf("{name} %s\\n", {name});' if name.endswith("_NAME") else f'  printf("{name} %lld\\n", (long long){name});'
             for name in names]
    (folder / "print.c").write_text("\n".join(["#include <stdio.h>", f'#include "{header.name}"', "int main(void) {", *lines, "}", ""]))
    language = ["-x", "c++"] if "++" in flags[0] else []
    subprocess.run([*flags, *WARNINGS, f"-I{header.parent}", *language, "print.c", "-o", "print"], cwd=folder, check=True)
    said = subprocess.run([folder / "print"], check=True, capture_output=True, timeout=60).stdout.decode()
    pairs = [line.split(" ", 1) for line in said.splitlines()]
    assert [name for name, _ in pairs] == names
    return {name: value if name.endswith("_NAME") else int(value) for name, value in pairs}


def of_tensor(start, index, info):
    yield start, index
    yield f"{start}_NAME", info.name.decode()
    yield f"{start}_DTYPE", info.dtype
    yield f"{start}_RANK", info.rank
    size = next(dtype.numpy.itemsize for dtype in DTYPES if dtype.code == info.dtype)
    for axis in range(info.rank):
        yield f"{start}_EXTENT_{axis}", info.max_shape[axis]
        size *= info.max_shape[axis]
    yield f"{start}_MAX_BYTES", size


def of_info(start, info, names):
    """What a header must say of a network: `names` are those that differ."""
    called = lambda kind, name: f"{start}_{kind}_{names.get((kind, name.decode()), name.decode())}"
    yield f"{start}_NAME", info.name.decode()
    for kind in ("DIMS", "INPUTS", "OUTPUTS", "STATES"):
        yield f"{start}_{kind}", getattr(info, f"n_{kind.lower()}")
    for i, dim in enumerate(info.dims[:info.n_dims]):
        name = called("DIM", dim.name)
        yield from ((name, i), (f"{name}_NAME", dim.name.decode()), (f"{name}_MIN", dim.min), (f"{name}_OPT", dim.opt),
                    (f"{name}_MAX", dim.max))
        if dim.multiple > 1:
            yield f"{name}_MULTIPLE", dim.multiple
    for i, tensor in enumerate(info.inputs[:info.n_inputs]):
        yield from of_tensor(called("INPUT", tensor.name), i, tensor)
    for i, tensor in enumerate(info.outputs[:info.n_outputs]):
        yield from of_tensor(called("OUTPUT", tensor.name), i, tensor)
    for i, state in enumerate(info.states[:info.n_states]):
        name = called("STATE", state.tensor.contents.name)
        yield from of_tensor(name, i, state.tensor.contents)
        yield from ((f"{name}_BATCH_AXIS", state.batch_axis), (f"{name}_SLOTS", state.slots))


def context_size(module):
    model = ctypes.c_void_p()
    assert module.api.model_create(None, ctypes.byref(model), None) == 0
    size = module.api.context_size(model)
    module.api.model_destroy(model)
    return size


def check(said, start, module, names):
    """Takes the network's constants out of `said`."""
    for name, value in of_info(start, module.info, names):
        assert said.pop(name) == value, name
    assert said.pop(f"{start}_CONTEXT_BYTES") >= context_size(module)


NAMES = {**{("INPUT", name): made for name, made in INPUTS.items()}, **{("DIM", name): made for name, made in DIMS.items()},
         **{("OUTPUT", f"y.{i}"): f"y_{i}" for i in range(len(INPUTS))}, ("STATE", "h.0"): "0"}


@pytest.fixture(scope="module")
def odd(rnncc, root, tmp_path_factory):
    """A folder of odd.so, odd.h and rnncc.h."""
    folder = tmp_path_factory.mktemp("odd")
    model = odd_model().write(folder)
    for options in (["-o", "odd.so"], ["--emit=h", "--name=odd", "-o", "odd.h"]):
        done = rnncc(model, "--target=x86-64", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
    (folder / "rnncc.h").symlink_to(root / "runtime" / "rnncc.h")
    return folder


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_constants_are_what_the_module_says_whatever_its_names(odd, tmp_path, compiler):
    said = constants(odd / "odd.h", tmp_path, compiler)
    with Module(odd / "odd.so") as module:
        assert len(module.inputs) == len(INPUTS) and len(module.states) == 2
        check(said, "odd", module, NAMES)
    assert not said


def arguments(text):
    return {name: words.split(", ") for name, words in re.findall(r"^#define (\w+)_TENSOR\((.*?)\)", text, re.MULTILINE)}


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_tensors_are_initialised_with_type_and_shape(odd, tmp_path, compiler):
    """The dims are the arguments, in the order in which they stand in the shape."""
    given = arguments((odd / "odd.h").read_text())
    numbers = {f"dim_{made}": 100 + i for i, made in enumerate(DIMS.values())}
    lines, due = [], []
    with Module(odd / "odd.so") as module:
        dims = list(module.dims)
        for kind, tensors in (("INPUT", module.info.inputs[:len(INPUTS)]), ("OUTPUT", module.info.outputs[:len(INPUTS)])):
            for tensor in tensors:
                name = tensor.name.decode()
                made = f"odd_{kind}_{NAMES[kind, name]}"
                values = "".join(f", {numbers[word]}" for word in given[made][2:])
                lines.append(f"  {{ rnncc_tensor t = {made}_TENSOR(data, sizeof data{values}); show(&t); }}")
                shape = [100 + tensor.dim[axis] if tensor.dim[axis] >= 0 else tensor.shape[axis] for axis in range(tensor.rank)]
                shape = shape if kind == "INPUT" else []
                due.append(" ".join(str(word) for word in (24, tensor.dtype, len(shape), *shape, *[0] * (8 - len(shape)))))
        assert len(dims) == len(DIMS)
    (tmp_path / "tensors.c").write_text("\n".join([
        "#include <stdio.h>", '#include "odd.h"', "static void show(const rnncc_tensor *t) {",
        '  printf("%d %d %d", (int)t->bytes, (int)t->dtype, (int)t->rank);',
        '  for (int i = 0; i < RNNCC_MAX_RANK; i++) printf(" %d", (int)t->shape[i]);', '  puts("");', "}",
        "int main(void) {", "  static const float data[6] = {0};", *lines, "}", ""]))
    language = ["-x", "c++"] if "++" in compiler[0] else []
    subprocess.run([*compiler, *WARNINGS, f"-I{odd}", *language, "tensors.c", "-o", "tensors"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "tensors"], check=True, capture_output=True, text=True).stdout.splitlines() == due


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_sizes_of_more_than_an_int_are_numbers_too(rnncc, root, tmp_path, compiler):
    model = Model("large")
    model.output(model.node("Relu", [model.input("x", "f32", [model.dim("T", 1, 5, 1 << 30), 4])]))
    done = rnncc(model.write(tmp_path), "--target=x86-64", "--emit=h", "--name=large", "-o", tmp_path / "large.h")
    assert done.returncode == 0, done.stderr
    (tmp_path / "rnncc.h").symlink_to(root / "runtime" / "rnncc.h")
    said = constants(tmp_path / "large.h", tmp_path, compiler)
    assert said["large_INPUT_x_MAX_BYTES"] == 16 << 30 and said["large_DIM_T_MAX"] == 1 << 30


def test_a_bundles_header_has_each_networks_constants(rnncc, root, tmp_path):
    models = {"odd": odd_model().write(tmp_path), "digits": root / "models" / "digits_rnn.json", "INPUT": root / "models" / "hyphenate.json"}
    words = [f"{name}={path}" for name, path in models.items()]
    for options in (["-o", "m.so"], ["--emit=h", "-o", "m.h"]):
        done = rnncc("bundle", *words, "--target=x86-64", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    (tmp_path / "rnncc.h").symlink_to(root / "runtime" / "rnncc.h")
    said = constants(tmp_path / "m.h", tmp_path, COMPILERS["gcc"])
    assert said.pop("m_NETWORKS") == 3
    for place, name in enumerate(models):
        assert said.pop(f"m_NETWORK_{name}") == place
        with Module(tmp_path / "m.so", name) as module:
            check(said, f"m_{name}", module, NAMES if name == "odd" else {})
    assert not said


def test_each_part_of_a_context_has_the_bytes_that_the_module_gives_it(odd, rnncc, root, tmp_path):
    """Whatever the number of its parts, the same is left over. Sizes of parts are rounded up to 64 bytes: of 70 such a part
    any other size is seen."""
    model = Model("many")
    for i in range(70):
        x = model.input(f"x{i}", "f32", [model.dim(f"D{i}", 1, 2, 100)])
        model.output(model.node("Neg", [x]))
        model.state(f"h{i}", model.node("Neg", [f"h{i}"]), "f32", [100])
    for options in (["-o", "many.so"], ["--emit=h", "--name=many", "-o", "many.h"]):
        done = rnncc(model.write(tmp_path), "--target=x86-64", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    left = []
    for name, folder in (("many", tmp_path), ("odd", odd)):
        text = (folder / f"{name}.h").read_text()
        with Module(folder / f"{name}.so") as module:
            left.append(int(re.search(rf"{name}_CONTEXT_BYTES = (\d+)", text)[1]) - context_size(module))
    assert left[0] == left[1]


@pytest.mark.parametrize("names, found", [(["a", "a_INPUT"], "a_INPUT_, found a_INPUT"), (["a_STATE_h", "a"], "a_STATE_, found a_STATE_h"),
                                          (["NETWORK"], "NETWORK_, found NETWORK"), (["NETWORK_a"], "NETWORK_, found NETWORK_a")], ids=str)
def test_networks_whose_constants_could_be_anothers_are_refused(rnncc, root, tmp_path, names, found):
    done = rnncc("bundle", *(f"{name}={root}/models/digits_rnn.json" for name in names), "-o", tmp_path / "m.so")
    assert done.returncode == 2 and found in done.stderr and list(tmp_path.iterdir()) == [], done.stderr
