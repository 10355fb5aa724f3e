# SPDX-License-Identifier: MIT
"""Calls of modules from Python: arrays of every kind go in and come out without a copy, and what is no such array is
refused, with what was expected and what was found."""
import array
import ctypes
import subprocess
import sys

import numpy
import pytest

from conftest import ROOT, build_directory
from support.model_builder import Model
from support.module import PACKAGE, rnncc

X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
K = numpy.array([5, -7])
FAKE = build_directory() / "tests" / "modules" / "fake_module.so"  # y = 2 x + the number of runs, z = k + 1


@pytest.fixture
def fake():
    with rnncc.load(FAKE) as module:
        yield module


class Shared:
    """An array that has DLPack, and nothing else."""

    def __init__(self, of, device=(1, 0)):
        self.of, self.device = of, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.of.__dlpack__(**options)


class SharedOnceMore(Shared):
    """The same, of before DLPack 1.0."""

    def __dlpack__(self):
        return self.of.__dlpack__()


def as_bytes(of):
    """ctypes' own arrays have the buffer protocol, too."""
    return (ctypes.c_float * 3 * len(of)).from_buffer_copy(of)


@pytest.mark.parametrize("kind", [numpy.array, memoryview, Shared, SharedOnceMore, as_bytes, numpy.asfortranarray,
                                  lambda of: numpy.repeat(of, 2, 1)[:, ::2], lambda of: memoryview(numpy.asfortranarray(of)),
                                  lambda of: Shared(numpy.asfortranarray(of)),
                                  lambda of: of[::-1].copy()[::-1], lambda of: of.view(numpy.recarray),
                                  lambda of: numpy.frombuffer(b"-" + of.tobytes(), numpy.uint8)[1:].view("f4").reshape(of.shape)],
                         ids=["NumPy", "memoryview", "DLPack", "older DLPack", "ctypes", "by columns", "every second",
                              "memoryview by columns", "DLPack by columns", "backwards", "subclass", "misaligned"])
def test_arrays_of_every_kind_go_in(fake, kind):
    for run in range(3):
        y, z = fake(kind(X), K)
        assert y.dtype == numpy.float32 and numpy.array_equal(y, 2 * X + run) and numpy.array_equal(z, K + 1)


def test_the_last_run_is_no_guide_to_the_next(fake):
    """A run like the one before is short of checks: each of these differs in one thing."""
    kinds = (X, X, X[:1], X[:1], numpy.asfortranarray(X), X, Shared(X), X, X[::-1], X)
    for run, x in enumerate(kinds):
        assert numpy.array_equal(fake(x, K)[0], 2 * getattr(x, "of", x) + run)


def test_a_run_like_the_last_one_tells_what_is_wrong(fake):
    for _ in range(2):
        fake(X, K)
        for call in (lambda: fake(X, K * 0 + 99), lambda: fake.run({"x": X, "k": K * 0 + 99})):
            with pytest.raises(rnncc.DataError, match="^input k: 99 at .0. is out of range$"):
                call()


class Later(Shared):
    """Its elements begin some bytes behind what DLPack calls its data."""

    def __dlpack__(self, **options):
        capsule = self.of.__dlpack__(max_version=(1, 0))
        pointer = rnncc.arrays._capsule_pointer(capsule, b"dltensor_versioned")
        tensor = rnncc.arrays._DLManagedTensorVersioned.from_address(pointer).tensor
        tensor.data, tensor.byte_offset = tensor.data - 64, 64
        return capsule


def test_elements_may_begin_behind_the_data(fake):
    assert numpy.array_equal(fake(Later(X), K)[0], 2 * X)


def test_inputs_go_by_name_too(fake):
    assert numpy.array_equal(fake(k=K, x=X)[0], 2 * X)
    assert numpy.array_equal(fake(X, k=K)[0], 2 * X + 1)
    assert list(fake.run({"k": K, "x": X})) == ["y", "z"]


def test_a_view_of_an_array_is_where_its_elements_are():
    slot = rnncc.load(FAKE).default._inputs[0]
    for kind in (numpy.asarray, memoryview, Shared):
        assert rnncc.arrays.view(slot, kind(X)).address == X.ctypes.data


def test_results_are_written_to_what_the_caller_gives(fake):
    y, z = numpy.full((2, 3), 9, numpy.float32), numpy.zeros(2, numpy.int64)
    for run in range(3):
        found = fake(X, K, out=(y, z))
        assert found[0] is y and found[1] is z and numpy.array_equal(y, 2 * X + run) and numpy.array_equal(z, K + 1)
    found = fake.run({"x": X, "k": K}, out={"z": z, "y": Shared(y)})
    assert numpy.array_equal(y, 2 * X + 3) and found["z"] is z
    memory = bytearray(24)
    fake(X, K, out=[memoryview(memory).cast("f", (2, 3)), array.array("q", [0, 0])])
    assert numpy.array_equal(numpy.frombuffer(memory, "f4").reshape(2, 3), 2 * X + 4)


def test_of_larger_arrays_the_leading_elements_are_the_result(fake):
    y, z = numpy.zeros((8, 3), numpy.float32), numpy.zeros(2, numpy.int64)
    for _ in range(2):
        found, _z = fake(X, K, out=(y, z))
        assert found.shape == (2, 3) and numpy.shares_memory(found, y) and numpy.array_equal(found, y[:2])
    assert fake(X[:1], K)[0].shape == (1, 3)


def by_words(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize("inputs, words, error", [
    ((X.astype("f8"), K), "input x: expected f32, found float64", rnncc.DTypeError),
    ((X.astype(">f4"), K), "input x: expected f32, found >f4", rnncc.DTypeError),
    ((X, K.astype("u8")), "input k: expected i64, found uint64", rnncc.DTypeError),
    ((X.view("V4"), K), "input x: expected f32, found |V4", rnncc.DTypeError),
    ((Shared(X.astype("f8")), K), "input x: expected f32, found float64", rnncc.DTypeError),
    ((memoryview(X.astype("f8")), K), "input x: expected f32, found a buffer of format 'd', of 8 bytes each", rnncc.DTypeError),
    ((X.tobytes(), K), "input x: expected f32, found a buffer of format 'B', of 1 bytes each", rnncc.DTypeError),
    ((X.tolist(), K), "input x: expected an array of f32 (NumPy, DLPack or a buffer), found list", rnncc.DTypeError),
    ((None, K), "input x: expected an array of f32 (NumPy, DLPack or a buffer), found NoneType", rnncc.DTypeError),
    ((numpy.ma.masked_less(X, 3), K), "input x: expected an array without a mask, found a masked one", rnncc.ArgumentError),
    ((Shared(X, (2, 1)), K), "input x: expected a tensor in the CPU's memory, found one on cuda:1", rnncc.ArgumentError),
    ((Shared(X, (99, 0)), K), "input x: expected a tensor in the CPU's memory, found one on device 99 of DLPack:0", rnncc.ArgumentError),
    ((X.reshape(1, 1, 1, 1, 1, 1, 1, 2, 3), K), "input x: expected rank 2, found 9", rnncc.ShapeError),
    ((X,), "expected the inputs x, k, found 1 in order", rnncc.ArgumentError),
    ((X, K, K), "expected the inputs x, k, found 3 in order", rnncc.ArgumentError),
    ((), "expected the inputs x, k, found none", rnncc.ArgumentError),
], ids=by_words)
def test_what_is_no_such_array_is_refused(fake, inputs, words, error):
    with pytest.raises(error) as refused:
        fake(*inputs)
    assert str(refused.value) == words and isinstance(refused.value, rnncc.Error)
    assert numpy.array_equal(fake(X, K)[0], 2 * X)


@pytest.mark.parametrize("named, words", [
    ({"x": X, "k": K, "h": K}, "expected the inputs x, k, found x, k, h"), ({"x": X}, "expected the inputs x, k, found x")])
def test_names_that_are_no_inputs_are_refused(fake, named, words):
    for call in (fake.run, lambda named: fake(**named)):
        with pytest.raises(rnncc.ArgumentError, match=words):
            call(named)


def read_only(of):
    of.flags.writeable = False
    return of


Y, Z = numpy.zeros((2, 3), numpy.float32), numpy.zeros(2, numpy.int64)


@pytest.mark.parametrize("out, words", [
    ((Y.astype("f8"), Z), "output y: expected f32, found float64"),
    ((read_only(Y.copy()), Z), "output y: expected an array that may be written, found a read-only one"),
    ((Shared(read_only(Y.copy())), Z), "output y: expected an array that may be written, found a read-only one"),
    ((numpy.broadcast_to(Y[:1], (2, 3)), Z), "output y: expected an array that may be written, found a read-only one"),
    ((Y[::-1], Z), "output y: expected a row-major array, found strides of (-12, 4) bytes"),
    ((Y.tobytes(), Z), "output y: expected f32, found a buffer of format 'B', of 1 bytes each"),
    ((memoryview(Y.tobytes()).cast("f", (2, 3)), Z), "output y: expected a buffer that may be written, found a read-only one"),
    ((numpy.asfortranarray(Y), Z), "output y: expected a row-major array, found strides of (4, 8) bytes"),
    ((Shared(numpy.asfortranarray(Y)), Z), "output y: expected a row-major array, found strides of (1, 2) elements"),
    ((memoryview(numpy.asfortranarray(Y)), Z), "output y: expected a row-major array, found strides of (4, 8) bytes"),
    (Y, "out: expected 2 arrays (y, z), found 1"),
    ({"y": Y}, "out: expected y, z, found y"),
], ids=by_words)
def test_what_results_cannot_be_written_to_is_refused(fake, out, words):
    for _ in range(2):  # the second time after a run that was right
        with pytest.raises(rnncc.Error) as refused:
            fake(X, K, out=out)
        assert str(refused.value) == words
        fake(X, K)


@pytest.fixture(scope="module")
def tagger(compile, tmp_path_factory):
    """y[T, B, 4] of x[T, B, 3] by a GRU, whose state has a slot for each of B samples."""
    rng, model = numpy.random.default_rng(1), Model("tagger")
    model.dim("T", 1, 5, 9), model.dim("B", 1, 2, 3)
    x = model.input("x", "f32", ["T", "B", 3])
    h = model.state("h0", "hN", "f32", [1, "B", 4], batch_axis=1)
    w, r = (model.constant(rng.standard_normal(shape).astype(numpy.float32)) for shape in ((1, 12, 3), (1, 12, 4)))
    y, _ = model.node("GRU", [x, w, r, None, None, h], ["y", "hN"], hidden_size=4)
    model.output(y)
    return compile(model.write(tmp_path_factory.mktemp("tagger")))


def samples(*shape):
    return numpy.random.default_rng(2).standard_normal(shape).astype(numpy.float32)


def test_a_module_says_what_it_computes(tagger):
    with rnncc.load(tagger, threads=1) as module:
        assert module.dims["T"] == rnncc.Dim("T", 1, 5, 9, 1) and module.threads == 1 and module.networks == ["tagger"]
        assert module.inputs == (rnncc.Tensor("x", "f32", ("T", "B", 3), (9, 3, 3)),)
        assert module.states == (rnncc.State("h0", "f32", (1, "B", 4), (1, 3, 4), 1, 3),)
        assert [(it.name, it.dtype, it.max_shape) for it in module.outputs] == [("y", "f32", (9, 1, 3, 4))]
        assert module.info.name == "tagger" and module.info.weights_bytes > 0
        assert 0 < module.info.worker_stack_bytes < module.info.run_stack_bytes < module.info.call_stack_bytes < 65536


def test_states_go_on_and_are_moved_by_slot(tagger):
    x = samples(6, 3, 3)
    with rnncc.load(tagger, threads=1) as module:
        whole, first, second = module.context(), module.context(), module.context()
        expected = whole(x)
        assert numpy.array_equal(first(x[:2]), expected[:2])
        kept = first.state("h0")
        assert kept.shape == (1, 3, 4) and first.state("h0", slot=1).shape == (1, 1, 4)
        for slot in range(3):
            second.set_state("h0", kept[:, slot:slot + 1], slot=slot)
        assert numpy.array_equal(second(x[2:]), expected[2:]) and numpy.array_equal(first(x[2:]), expected[2:])
        first.reset(slot=1)
        assert not first.state("h0", slot=1).any() and first.state("h0", slot=0).any()
        first.reset()
        assert numpy.array_equal(first(x), expected)


@pytest.mark.parametrize("use, error, words", [
    (lambda it: it.state("h1"), rnncc.ArgumentError, "the model has no state h1; it has h0"),
    (lambda it: it.state("h0", slot=3), rnncc.ArgumentError, "state 'h0' has slots 0 to 2 (-1 for all), not 3"),
    (lambda it: it.state("h0", slot=-1), rnncc.ArgumentError, "state h0: expected a slot from 0 on, found -1"),
    (lambda it: it.reset(slot=3), rnncc.ArgumentError, "no state has a slot 3 (-1 is for all)"),
    (lambda it: it.state("h0", slot=2**32), rnncc.ArgumentError, "slot: expected a whole number of 32 bits, found 4294967296"),
    (lambda it: it.reset(slot=2**32), rnncc.ArgumentError, "slot: expected a whole number of 32 bits, found 4294967296"),
    (lambda it: it.reset(slot=1.5), rnncc.ArgumentError, "slot: expected a whole number of 32 bits, found 1.5"),
    (lambda it: it.set_state("h0", samples(1, 1, 4)), rnncc.ShapeError, "state h0: expected the shape (1, 3, 4), found (1, 1, 4)"),
    (lambda it: it.set_state("h0", samples(1, 3, 4).astype("f8")), rnncc.DTypeError, "state h0: expected f32, found float64"),
    (lambda it: it(samples(10, 1, 3)), rnncc.BoundError, "input 'x': axis 0 is 10, but 'T' was compiled for 1 to 9"),
    (lambda it: it(samples(1, 1, 2)), rnncc.ShapeError, "input 'x': axis 2 is 2, the model's is 3"),
    (lambda it: it(samples(1, 3)), rnncc.ShapeError, "input 'x' has rank 2, the model's is 3"),
    (lambda it: it(samples(2, 1, 3), out=numpy.zeros((1, 1, 1, 4), "f4")), rnncc.SizeError,
     "output 'y': the buffer has 16 bytes, its shape takes 32"),
], ids=by_words)
def test_errors_have_the_words_of_the_module_and_a_class_of_their_own(tagger, use, error, words):
    with rnncc.load(tagger, threads=1) as module:
        with pytest.raises(error) as refused:
            use(module.default)
        assert type(refused.value) is error
        found = str(refused.value)
        assert found == words, found


def misaligned(of):
    """The same elements, a byte behind where they should be."""
    found = memoryview(bytearray(b"-" + of.tobytes()))[1:].cast(of.dtype.char, of.shape)
    assert rnncc.arrays._address(found) % of.itemsize
    return found


@pytest.mark.parametrize("kind", [misaligned, lambda of: Shared(numpy.asarray(misaligned(of)))], ids=["memoryview", "DLPack"])
def test_inputs_that_are_not_aligned_are_copied(tagger, kind):
    x = samples(2, 3, 3)
    with rnncc.load(tagger, threads=1) as module:
        expected, state = module(x), module.default.state("h0")
        module.default.reset()
        assert numpy.array_equal(module(kind(x)), expected)
        module.default.set_state("h0", kind(state))
        assert numpy.array_equal(module.default.state("h0"), state)
        with pytest.raises(rnncc.ArgumentError, match="output 'y': data is not aligned to its 4-byte elements"):
            module(x, out=kind(expected))


def test_extents_above_their_bounds_take_no_memory(compile, tmp_path):
    """The result would be of 36 TB."""
    model = Model()
    model.dim("T", 1, 4, 64)
    x = model.input("x", "f32", ["T", 4])
    model.output(model.node("MatMul", [x, model.node("Transpose", [x], perm=[1, 0])]))
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        with pytest.raises(rnncc.BoundError, match="axis 0 is 3000000, but 'T' was compiled for 1 to 64"):
            module(numpy.zeros((3_000_000, 4), numpy.float32))
        assert module(numpy.ones((64, 4), numpy.float32)).shape == (64, 64)


def test_a_profile_is_a_table_of_kernels(tagger):
    with rnncc.load(tagger, threads=1) as module:
        with module.default.profile() as rows:
            for _ in range(3):
                module(samples(5, 2, 3))
        assert rows and all(row.calls == 3 and row.seconds >= 0 for row in rows)
        assert any("gru" in row.kernel for row in rows) and sum(row.flops for row in rows) > 0
        module(samples(5, 2, 3))
        with module.default.profile() as later:
            pass
        assert [row.calls for row in later] == [0] * len(rows) and rows[0].calls == 3


def test_lengths_that_the_data_decide_are_those_of_the_results(compile, tmp_path):
    model = Model()
    model.output(model.node("NonZero", [model.input("x", "f32", [4])]))
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        for x in ([0, 1, 0, 2], [0, 0, 0, 0], [1, 2, 3, 4], [0, 0, 3, 0]):
            found = module(numpy.array(x, "f4"))
            assert numpy.array_equal(found, numpy.array(numpy.nonzero(x))) and found.base is None
            room = numpy.zeros((1, 4), "i8")
            assert numpy.array_equal(module(numpy.array(x, "f4"), out=room), found)


def test_every_element_type_goes_in_and_out(compile, tmp_path):
    from support.dtypes import DTYPES
    model = Model()
    feeds = {}
    for dtype in DTYPES:
        model.output(model.node("Transpose", [model.input(dtype.name, dtype.name, [2, 1])], perm=[1, 0]))
        feeds[dtype.name] = numpy.array([[0], [1]]).astype(dtype.numpy)
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        for found, given in zip(module(**feeds), feeds.values()):
            assert found.dtype == given.dtype and found.tobytes() == given.tobytes() and found.shape == (1, 2)


def test_without_numpy_buffers_go_in_and_out(tagger):
    """-S leaves packages out."""
    script = f"""
import sys, array
sys.path.insert(0, {str(PACKAGE)!r})
import rnncc
assert rnncc.dtypes.numpy is None
m = rnncc.load({str(tagger)!r}, threads=1)
x = memoryview(array.array("f", [0.5] * 6)).cast("B").cast("f", (2, 1, 3))
y = m(x)
out = memoryview(bytearray(64)).cast("f", (4, 1, 1, 4))
m.default.reset()
z = m(x, out=out)
print(y.shape, z.shape, y.tolist() == z.tolist(), m.default.state("h0").shape)
"""
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "(2, 1, 1, 4) (2, 1, 1, 4) True (1, 3, 4)\n", done.stderr


def test_the_table_of_element_types_is_the_runtimes():
    from support.dtypes import DTYPES, ML_DTYPES
    from rnncc import dtypes
    assert {it.code: (it.name, dtypes.numpy_dtype(it), it.size, it.ml_dtypes) for it in dtypes.DTYPES} == {
        it.code: (it.name, it.numpy, it.numpy.itemsize, ML_DTYPES.get(it.name)) for it in DTYPES}


def test_its_types_are_checked():
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", PACKAGE / "rnncc"],
                          capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
