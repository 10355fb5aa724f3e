# SPDX-License-Identifier: MIT
"""DFT and STFT compared with numpy's FFT in double precision."""
import numpy
import pytest

from graphs.op_models import one_op
from support.emitted import run_module
from support.merge import merged
from support.model_builder import Model

EPSILON = 2.0**-24


def real_pair(values):
    return numpy.stack([values.real, values.imag], -1)


def complex_of(x):
    return x[..., 0].astype(float) + (1j * x[..., 1].astype(float) if x.shape[-1] == 2 else 0)


def assert_transformed(got, want, length, largest):
    """Each of the 2 * length products has its factors' rounding errors and its own; the sum has one for each term. A
    transform in two steps has those of both, and of the factors between."""
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


def dft_models(rng):
    for shape, axis, length, inverse, onesided in TRANSFORMS:
        x = rng.uniform(-1, 1, shape).astype("f")
        model, feeds = one_op("DFT", [x, None if length is None else numpy.array(length), numpy.array(axis)],
                              constants=(1, 2), inverse=inverse, onesided=onesided)
        axis = axis % x.ndim
        values = complex_of(x)
        if inverse and onesided:
            want = numpy.fft.irfft(values, length, axis=axis)[..., None]
        else:
            transform = numpy.fft.ifft if inverse else numpy.fft.rfft if onesided else numpy.fft.fft
            want = real_pair(transform(values.real if onesided else values, length, axis=axis))
        yield model, feeds, want, (length or shape[axis]) / (shape[axis] if inverse else 1)


def test_transforms_along_any_axis_of_any_length(compile, tmp_path):
    cases = list(dft_models(numpy.random.default_rng(0)))
    model, feeds = merged([(model, feeds) for model, feeds, _, _ in cases])
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 3))
    for k, (part, _, want, length) in enumerate(cases):
        assert_transformed(got[f"p{k}_{part.outputs[0]}"], want, length, 1)


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
    for n, step, window, constant in [(16, 4, None, True), (25, 10, True, True), (25, 10, True, False), (64, 64, True, True)]:
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


@pytest.mark.parametrize("shape,attributes,code", [((2, 2053, 1), {}, 3), ((2, 8, 2), {"onesided": 1}, 2),
                                                   ((2, 8, 1), {"onesided": 1, "inverse": 1}, 2), ((2, 8, 3), {}, 2),
                                                   ((2, 1, 2), {"onesided": 1, "inverse": 1}, 2),
                                                   ((2, 8, 1), {"axis": 2}, 2), ((8,), {}, 2)])
def test_transforms_that_cannot_be_are_refused(rnncc, tmp_path, shape, attributes, code):
    model = Model()
    model.output(model.node("DFT", [model.input("x", "f32", shape)], **attributes))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == code and "DFT" in done.stderr
