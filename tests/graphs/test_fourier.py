# SPDX-License-Identifier: MIT
"""DFT and STFT compared with numpy's FFT in double precision."""
import numpy
import pytest

from graphs.op_models import one_op
from support.emitted import TARGETS, run_module
from support.merge import merged
from support.model_builder import Model

EPSILON = 2.0**-24


def real_pair(values):
    return numpy.stack([values.real, values.imag], -1)


def complex_of(x):
    return x[..., 0].astype(float) + (1j * x[..., 1].astype(float) if x.shape[-1] == 2 else 0)


def assert_transformed(got, want, length, largest):
    """Each of the 2 * length products has its factors' rounding errors and its own; the sum has one for each term. Several
    passes have fewer."""
    assert got.dtype == numpy.float32 and got.shape == want.shape
    numpy.testing.assert_allclose(got, want, rtol=0, atol=2 * length * 4 * EPSILON * largest)


# (shape, axis, length, inverse, onesided)
TRANSFORMS = [((3, 16, 1), 1, None, 0, 0), ((3, 16, 1), 1, None, 0, 1), ((2, 7, 2), 1, None, 0, 0), ((2, 7, 2), -2, None, 1, 0),
              ((5, 1), 0, None, 0, 1), ((2, 6, 5, 1), 1, None, 0, 1), ((2, 6, 5, 2), 1, None, 1, 0), ((1, 1, 1), 1, None, 0, 1),
              ((4, 400, 1), 1, 512, 0, 1), ((4, 400, 1), 1, 200, 0, 0), ((2, 3, 9, 2), 2, 15, 0, 0), ((2, 2000, 1), 1, None, 0, 1),
              ((2, 1331, 2), 1, None, 1, 0), ((1, 2048, 1), 1, None, 0, 1), ((1, 1024, 1), 1, None, 0, 1),
              ((1, 257, 1), 1, None, 0, 1), ((1, 514, 1), 1, None, 0, 1), ((1, 1049, 1), 1, None, 0, 1), ((1, 2062, 2), 1, None, 1, 0),
              ((3, 9, 2), 1, None, 1, 1), ((2, 8, 2), 1, 15, 1, 1), ((2, 1, 2), 1, 1, 1, 1), ((2, 2, 2), 1, None, 1, 1),
              ((2, 5, 3, 2), 1, 12, 1, 1), ((2, 4, 9, 2), -2, 10, 1, 1), ((1, 257, 2), 1, None, 1, 1),
              ((2, 201, 2), 1, 400, 1, 1), ((1, 614, 2), 1, 1227, 1, 1), ((1, 1025, 2), 1, None, 1, 1)]


def transformed(x, axis, length, inverse, onesided):
    values = complex_of(x)
    if inverse and onesided:
        return numpy.fft.irfft(values, length, axis=axis)[..., None]
    transform = numpy.fft.ifft if inverse else numpy.fft.rfft if onesided else numpy.fft.fft
    return real_pair(transform(values.real if onesided else values, length, axis=axis))


def dft_models(rng):
    for shape, axis, length, inverse, onesided in TRANSFORMS:
        x = rng.uniform(-1, 1, shape).astype("f")
        model, feeds = one_op("DFT", [x, None if length is None else numpy.array(length), numpy.array(axis)],
                              constants=(1, 2), inverse=inverse, onesided=onesided)
        want = transformed(x, axis % x.ndim, length, inverse, onesided)
        yield model, feeds, want, (length or shape[axis]) / (shape[axis] if inverse else 1)


def test_transforms_along_any_axis_of_any_length(compile, tmp_path):
    cases = list(dft_models(numpy.random.default_rng(0)))
    model, feeds = merged([(model, feeds) for model, feeds, _, _ in cases])
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 3))
    for k, (part, _, want, length) in enumerate(cases):
        assert_transformed(got[f"p{k}_{part.outputs[0]}"], want, length, 1)


# (points, parts, inverse, onesided): every radix, and pairs of them; 2053, 2062 and 4099 have too large a prime factor.
LENGTHS = [*((n, 1, 0, 1) for n in (256, 320, 400, 512, 960, 1024, 4096, 441, 1155)), (720, 1, 0, 0), (363, 1, 0, 0),
           *((n, 2, 0, 0) for n in (210, 512, 899, 4410)), (221, 2, 1, 0), (1024, 2, 1, 0), (300, 1, 1, 0),
           *((n, 2, 1, 1) for n in (256, 400, 441, 960, 1155)), (2053, 1, 0, 1), (4099, 2, 1, 1), (2062, 2, 1, 0)]
ROWS = 3


def error_bound(n):
    """Of a row's 2-norm, by Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2: log2 n steps of a radix 2
    err by 1 + 4 sqrt 2 roundings each, all others by no more a factor of 2; a radix r sums r / 2 pairs of products, which
    is (r / 2 + 3) sqrt r roundings: for 31 three times those of its log2 31 steps. Packed points and a scale add three
    steps. A chirp takes two transforms of four times the length, and three products."""
    largest = max(factor for factor in range(2, n + 1) if n % factor == 0 and all(factor % k for k in range(2, factor)))
    if largest > 31:
        return 7 * (2 * numpy.log2(4 * n) + 9) * EPSILON
    return 7 * (3 if largest > 7 else 1) * (numpy.log2(n) + 3) * EPSILON


def length_models(rng):
    for n, parts, inverse, onesided in LENGTHS:
        x = rng.standard_normal((ROWS, n // 2 + 1 if inverse and onesided else n, parts)).astype("f")
        model, feeds = one_op("DFT", [x, numpy.array(n)], constants=(1,), inverse=inverse, onesided=onesided)
        values = complex_of(x)
        if inverse and onesided:
            want = numpy.fft.irfft(values, n)[..., None]
        else:
            want = real_pair((numpy.fft.ifft if inverse else numpy.fft.rfft if onesided else numpy.fft.fft)(
                values.real if onesided else values))
        yield model, feeds, want, n


@pytest.mark.parametrize("target", TARGETS)
def test_errors_grow_by_the_logarithm_of_the_length(compile, tmp_path, target):
    cases = list(length_models(numpy.random.default_rng(1)))
    model, feeds = merged([(model, feeds) for model, feeds, _, _ in cases])
    got = run_module(compile(model.write(tmp_path), f"--target={target}", optimised=False), feeds, threads=(1, 3))
    for k, (part, _, want, n) in enumerate(cases):
        apart = (got[f"p{k}_{part.outputs[0]}"] - want).reshape(ROWS, -1)
        error = numpy.linalg.norm(apart, axis=1) / numpy.linalg.norm(want.reshape(ROWS, -1), axis=1)
        assert error.max() <= error_bound(n), LENGTHS[k]


@pytest.mark.optimised_here
def test_kernels_equal_the_reference(reference, compile, tmp_path):
    """Which is plain sums in double."""
    rng = numpy.random.default_rng(2)
    models = [(one_op("DFT", [rng.standard_normal(shape).astype("f"), numpy.array(n)], constants=(1,), inverse=inverse,
                      onesided=onesided), n)
              for shape, n, inverse, onesided in [((2, 256, 1), 256, 0, 1), ((2, 300, 2), 300, 1, 0), ((2, 151, 2), 300, 1, 1),
                                                  ((1, 147, 1), 147, 0, 0)]]
    x, window = rng.standard_normal((2, 700, 1)).astype("f"), numpy.hanning(256).astype("f")
    models += [(stft_model(x, 256, 50, window, constant, onesided), 256) for constant, onesided in ((True, 1), (False, 0))]
    model, feeds = merged([one for one, _ in models])
    path = model.write(tmp_path)
    want, got = reference.run(model, path, feeds), run_module(compile(path), feeds)
    for k, ((part, _), n) in enumerate(models):
        name = f"p{k}_{part.outputs[0]}"
        error = numpy.linalg.norm(got[name] - want[name].astype(float)) / numpy.linalg.norm(want[name])
        assert error <= error_bound(n) + EPSILON, name


def spectra(x, window, step, onesided):
    values, n = complex_of(x), len(window)
    frames = numpy.stack([values[:, at:at + n] * window for at in range(0, values.shape[1] - n + 1, step)], 1)
    return real_pair(numpy.fft.rfft(frames.real) if onesided and x.shape[-1] == 1 else numpy.fft.fft(frames))


def stft_model(x, n, step, window, constant, onesided, extent=None):
    model = Model()
    feeds = {"x": x}
    names = [model.input("x", "f32", [x.shape[0], extent or x.shape[1], x.shape[2]]), model.constant(numpy.array(step))]
    if window is None:
        names += ["", model.constant(numpy.array(n))]
    elif constant:
        names += [model.constant(window)]
    else:
        names += [model.input("w", "f32", window.shape), model.constant(numpy.array(n))]
        feeds["w"] = window
    model.output(model.node("STFT", names, onesided=onesided))
    return model, feeds


@pytest.mark.parametrize("parts,onesided", [(1, 1), (1, 0), (2, 0), (2, 1)])
def test_spectra_of_frames(compile, tmp_path, parts, onesided):
    rng, models, wants = numpy.random.default_rng(3), [], []
    for n, step, window, constant in [(16, 4, None, True), (25, 10, True, True), (25, 10, True, False), (64, 64, True, True),
                                      (100, 20, True, True), (99, 7, True, False), (128, 128, None, True), (37, 11, True, False)]:
        x = rng.uniform(-1, 1, (2, 140, parts)).astype("f")
        window = rng.uniform(0, 1, n).astype("f") if window else None
        models.append(stft_model(x, n, step, window, constant, onesided))
        wants.append((n, spectra(x, numpy.ones(n) if window is None else window, step, onesided)))
    model, feeds = merged(models)
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 3))
    for k, (n, want) in enumerate(wants):
        assert_transformed(got[f"p{k}_{models[k][0].outputs[0]}"], want, n, 1)


def test_a_signal_of_a_length_known_at_run_time(compile, tmp_path):
    rng, window = numpy.random.default_rng(4), numpy.hanning(40).astype("f")
    for length in (40, 333, 900):
        x = rng.uniform(-1, 1, (1, length, 1)).astype("f")
        model, feeds = stft_model(x, 40, 16, window, True, 1, "L")
        model.dim("L", 40, 500, 1000)
        got = run_module(compile(model.write(tmp_path)), feeds)
        assert_transformed(got[model.outputs[0]], spectra(x, window, 16, 1), 40, 1)


# (shape, axis, length, inverse, onesided), the axis of extent None
LENGTHS_OF_THE_RUN = [((3, None, 1), 1, None, 0, 0), ((3, None, 1), 1, None, 0, 1), ((2, None, 2), 1, None, 0, 0),
                      ((2, None, 2), -2, None, 1, 0), ((None, 1), 0, None, 0, 1), ((2, None, 5, 1), 1, None, 0, 1),
                      ((2, None, 5, 2), 1, None, 1, 0), ((3, None, 1), 1, 40, 0, 1), ((3, None, 2), 1, 12, 1, 0),
                      ((2, None, 2), 1, 30, 1, 1)]


@pytest.mark.every_case
@pytest.mark.parametrize("least,most", [(1, 100), (7, 8), (16, 129)])
def test_transforms_of_as_many_points_as_the_run_has(compile, tmp_path, least, most):
    def shapes_of(n):
        return [tuple(n if extent is None else extent for extent in shape) for shape, *_ in LENGTHS_OF_THE_RUN]

    rng, model = numpy.random.default_rng(5), Model()
    model.dim("N", least, least + 1, most)
    for k, (shape, axis, length, inverse, onesided) in enumerate(LENGTHS_OF_THE_RUN):
        operands = [model.input(f"x{k}", "f32", ["N" if extent is None else extent for extent in shape]),
                    "" if length is None else model.constant(numpy.array(length)), model.constant(numpy.array(axis))]
        model.output(model.node("DFT", operands, inverse=inverse, onesided=onesided))
    module = compile(model.write(tmp_path))
    for n in {least, least + 1, min(least + 30, most), most - 1, most}:
        xs = [rng.uniform(-1, 1, shape).astype("f") for shape in shapes_of(n)]
        got = run_module(module, {f"x{k}": x for k, x in enumerate(xs)}, threads=(1, 3))
        for k, (shape, axis, length, inverse, onesided) in enumerate(LENGTHS_OF_THE_RUN):
            want = transformed(xs[k], axis % len(shape), length, inverse, onesided)
            assert_transformed(got[model.outputs[k]], want, most, 1)


@pytest.mark.parametrize("shape,attributes,code", [((2, 33554432 - 1, 1), {}, 3), ((2, 8, 2), {"onesided": 1}, 2),
                                                   ((2, 8, 1), {"onesided": 1, "inverse": 1}, 2), ((2, 8, 3), {}, 2),
                                                   ((2, 1, 2), {"onesided": 1, "inverse": 1}, 2),
                                                   ((2, 8, 1), {"axis": 2}, 2), ((8,), {}, 2)])
def test_transforms_that_cannot_be_are_refused(rnncc, tmp_path, shape, attributes, code):
    model = Model()
    model.output(model.node("DFT", [model.input("x", "f32", shape)], **attributes))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == code and "DFT" in done.stderr


@pytest.mark.parametrize("least,most,attributes,told", [
    (0, 8, {}, "axis 1 of `x` f32[2, N, 2] may be 0 long; a transform has at least 1 point"),
    (1, (1 << 23) + 1, {}, "axis 1 of `x` f32[2, N, 2] may be 8388609 long; at most 8388608 points are supported where only "
     "the run knows how many"),
    (4, 8, {"inverse": 1, "onesided": 1}, "the inverse of half a spectrum: axis 1 of `x` f32[2, N, 2] must be known at "
     "compile time")])
def test_lengths_of_the_run_that_cannot_be_are_refused(rnncc, tmp_path, least, most, attributes, told):
    model = Model()
    model.dim("N", least, most, most)
    model.output(model.node("DFT", [model.input("x", "f32", [2, "N", 2])], **attributes))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 3 and told in done.stderr
