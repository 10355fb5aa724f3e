# SPDX-License-Identifier: MIT
"""--bound: integers that the data decide and that nothing in the graph bounds. Results are ONNX Runtime's within the bounds; a
run beyond them fails, and the next one is right again."""
import numpy
import pytest

from support.bodies import Body
from support.flow import same_at_all_threads
from support.model_builder import Model
from support.module import Module, ModuleError


def i64(*numbers):
    return numpy.array(numbers[0] if len(numbers) == 1 else numbers, numpy.int64)


def regulated(model, durations):
    """Rows of x [T, 3], each as often as its duration says: how a text's sounds become frames of speech."""
    ends = model.node("CumSum", [durations, model.constant(i64(0))])
    count = model.node("ReduceSum", [durations], keepdims=0)
    frames = model.node("Range", [model.constant(i64(0)), count, model.constant(i64(1))])
    behind = model.node("LessOrEqual", [model.node("Unsqueeze", [ends, model.constant(i64(0)[None])]),
                                        model.node("Unsqueeze", [frames, model.constant(i64(1)[None])])])
    row = model.node("ReduceSum", [model.node("Cast", [behind], to="i64"), model.constant(i64(1)[None])], keepdims=0)
    return count, model.node("Gather", [model.input("x", "f32", ["T", 3]), row], axis=0)


def speech():
    """Durations from floats, as networks predict them."""
    model = Model()
    predicted = model.input("predicted", "f32", [model.dim("T", 1, 3, 6)])
    durations = model.node("Cast", [model.node("Ceil", [model.node("Exp", [predicted])])], to="i64")
    count, rows = regulated(model, durations)
    model.output(rows, count)
    return model, count


def spoken(*durations):
    rng = numpy.random.default_rng(len(durations))
    return {"predicted": numpy.log(numpy.array(durations, numpy.float32) - 0.5), "x": rng.standard_normal((len(durations), 3), numpy.float32)}


def test_a_length_that_a_network_predicts(compile, tmp_path):
    model, count = speech()
    feeds = [spoken(1), spoken(2, 1, 3), spoken(1, 1, 1, 1, 1, 1), spoken(5, 4)]
    same_at_all_threads(compile, model, tmp_path, feeds, options=[f"--bound={count}=9"])


def test_a_longer_one_is_an_error_of_the_run(compile, tmp_path):
    model, count = speech()
    with Module(compile(model.write(tmp_path), f"--bound={count}=9")) as module:
        for threads in (1, 3):
            with module.context(threads) as context:
                for durations in ((9, 1), (400, 400, 400), (2, 2, 2, 2, 2)):
                    with pytest.raises(ModuleError) as raised:
                        context.run(spoken(*durations))
                    assert raised.value.status == "value", raised.value
                    good = context.run(spoken(4, 5))
                    numpy.testing.assert_array_equal(good[model.outputs[0]], model.onnx_run(spoken(4, 5))[model.outputs[0]])


def test_an_input_as_a_trip_count(compile, tmp_path):
    model = Model()
    body = Body(model, i="i64", c="bool", h="f32")
    i, c, h = body.inputs
    more = body.node("Add", [h, body.node("Cast", [i], to="f32")])
    body.output(body.node("Identity", [c]), more, body.node("Neg", [more]))
    model.output(*model.node("Loop", [model.input("n", "i64", []), None, model.input("x", "f32", [3])], 2, body=body))
    x = numpy.array([1, -2, 0.5], numpy.float32)
    path = compile(model.write(tmp_path), "--bound=n=7")
    with Module(path) as module, module.context(1) as context:
        for n in (0, 1, 7):
            got, due = context.run({"n": i64(n), "x": x}), model.onnx_run({"n": i64(n), "x": x})
            for name in model.outputs:
                numpy.testing.assert_array_equal(got[name].reshape(due[name].shape), due[name])
        for n in (-1, 8):
            with pytest.raises(ModuleError, match="value"):
                context.run({"n": i64(n), "x": x})


def test_a_value_in_a_body(compile, tmp_path):
    """Each turn of the loop has a range of its own."""
    model = Model()
    body = Body(model, i="i64", c="bool", h="i64")
    i, c, h = body.inputs
    twice = body.node("Add", [h, h])
    places = body.node("Range", [body.constant(i64(0)), twice, body.constant(i64(1))])
    body.output(body.node("Identity", [c]), twice, body.node("ReduceSum", [places], keepdims=0))
    model.output(*model.node("Loop", [model.constant(i64(3)), None, model.input("n", "i64", [])], 2, body=body))
    same_at_all_threads(compile, model, tmp_path, [{"n": i64(n)} for n in (0, 1, 5)], options=[f"--bound={twice}=40"])
    with Module(compile(model.write(tmp_path), f"--bound={twice}=40")) as module, module.context(1) as context, \
            pytest.raises(ModuleError, match="value"):
        context.run({"n": i64(6)})


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_range_of_floats_that_are_whole(compile, tmp_path, dtype):
    """As PyTorch writes arange(n), whose numbers are floats; with a step, downwards, and for limits that f32 has not."""
    of = {"f32": numpy.float32, "f64": numpy.float64}[dtype]
    model = Model()
    n = model.node("Min", [model.input("n", "i64", []), model.constant(i64(20))])
    limit = model.node("Cast", [n], to=dtype)
    model.output(model.node("Range", [model.constant(of(-3)), limit, model.constant(of(2))]),
                 model.node("Range", [limit, model.constant(of(-5)), model.constant(of(-3))]))
    feeds = [{"n": i64(n)} for n in (-2**62, -2**40 - 1, -6, -3, -2, 0, 7, 20, 2**62)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_a_range_of_floats_that_may_have_a_fraction_is_refused(rnncc, tmp_path):
    model = Model()
    limit = model.node("Mul", [model.node("Cast", [model.input("n", "i64", [])], to="f32"), model.constant(numpy.float32(0.5))])
    model.output(model.node("Range", [model.constant(numpy.float32(0)), limit, model.constant(numpy.float32(1))]))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so", "--bound=n=20")
    assert done.returncode == 3 and "limit (input 1" in done.stderr, done.stderr


def test_a_bound_of_i32(compile, tmp_path):
    model = Model()
    n = model.input("n", "i32", [])
    model.output(model.node("Range", [model.constant(numpy.int32(2)), n, model.constant(numpy.int32(3))]))
    same_at_all_threads(compile, model, tmp_path, [{"n": numpy.array(n, numpy.int32)} for n in (1, 2, 3, 20)], options=["--bound=n=1..20"])


def test_a_length_of_at_least_a_window(rnncc, compile, tmp_path):
    """A convolution over frames needs as many as its window has: with the smaller bound given, it compiles."""
    model = Model()
    n = model.input("n", "i64", [])
    frames = model.node("Cast", [model.node("Range", [model.constant(i64(0)), n, model.constant(i64(1))])], to="f32")
    signal = model.node("Unsqueeze", [frames, model.constant(i64(0, 1))])
    model.output(model.node("Conv", [signal, model.constant(numpy.array([[[1, -2, 4]], [[0, 3, 1]]], numpy.float32))]))
    same_at_all_threads(compile, model, tmp_path, [{"n": i64(n)} for n in (3, 4, 30, 50)], options=["--bound=n=3..50"])
    refused = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so", "--bound=n=50")
    assert refused.returncode and "minima" in refused.stderr, refused.stderr


def test_a_bound_that_shapes_imply_changes_nothing(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 1, 3, 6)])
    length = model.node("Squeeze", [model.node("Shape", [x])])
    model.output(model.node("Range", [model.constant(i64(0)), length, model.constant(i64(1))]))
    same_at_all_threads(compile, model, tmp_path, [{"x": numpy.zeros(T, numpy.float32)} for T in (1, 6)], options=[f"--bound={length}=9"])


@pytest.mark.parametrize("options, said", [
    (["--bound=nothing=9"], '--bound: the model has no value "nothing"; it has '),
    (["--bound=predicted=9"], "--bound predicted=0..9: error: input 0 of ExpectBetween (`predicted`) is f32"),
    (["--bound=n=0"], "--bound: expected NAME=MAX or NAME=MIN..MAX, numbers from 1 to 2^31 - 1, MIN <= MAX"),
    (["--bound=n=2147483648"], "expected NAME=MAX or"),
    (["--bound=n=9x"], "expected NAME=MAX or"),
    (["--bound=n=9..8"], "expected NAME=MAX or"),
    (["--bound=n=1..5..9"], "expected NAME=MAX or"),
    (["--bound=9"], "expected NAME=MAX or"),
    (["--bound={count}=9", "--bound={count}=8"], '--bound: expected "{count}" once, found it twice'),
])
def test_bounds_that_fit_nothing(rnncc, tmp_path, options, said):
    model, count = speech()
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so", *[option.format(count=count) for option in options])
    assert done.returncode in (2, 3) and said.format(count=count) in done.stderr, done.stderr
    assert not (tmp_path / "m.so").exists()


def test_bounds_of_a_bundle(rnncc, tmp_path):
    model, count = speech()
    path = model.write(tmp_path)
    models = [f"short={path}", f"long={path}"]
    done = rnncc("bundle", *models, "-o", tmp_path / "m.so", f"--bound=short:{count}=4", f"--bound={count}=40")
    assert done.returncode == 0, done.stderr
    for network, most in (("short", 4), ("long", 40)):
        with Module(tmp_path / "m.so", network) as module, module.context(1) as context:
            assert context.run(spoken(most))[model.outputs[1]] == most
            with pytest.raises(ModuleError, match="value"):
                context.run(spoken(most, 1))
    done = rnncc("bundle", *models, "-o", tmp_path / "m.so", f"--bound={count}=9", "--bound=nothing=4")
    assert done.returncode == 2 and '--bound: expected a value, found "nothing"; short has ' in done.stderr, done.stderr
