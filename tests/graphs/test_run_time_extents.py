# SPDX-License-Identifier: MIT
"""Resize and Pad whose extents, sizes or amounts only the run knows, alone, in U-Nets and before windows: the results of
ONNX Runtime, or where that has none those of the reference interpreter, at all extents from the least to the largest."""
import itertools
import json

import numpy
import pytest

from support.amount import half, long_tests
from support.emitted import TARGETS, assert_same, run_module
from support.model_builder import TYPES, Model
from support.module import Module, ModuleError

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
# A sum of four times four weights, each rounded, whose magnitudes add up to less than 2 along each axis.
BOUND = 64 * 2.0**-24
BY_TARGET = [*TARGETS, "aarch64-linux-gnu"]


class Images(Model):
    """x [N, 3, H, W], and `like` [1, 1, P, Q], whose extents are wanted."""

    def __init__(self, largest=9):
        super().__init__()
        self.dim("N", 1, 1, 2)
        for name in "HWPQ":
            self.dim(name, 1, 5, largest)
        self.x, self.like = self.input("x", "f32", ["N", 3, "H", "W"]), self.input("like", "f32", [1, 1, "P", "Q"])
        self.wanted = self.node("Concat", [self.node("Shape", [self.x], end=2), self.node("Shape", [self.like], start=2)],
                                axis=0)

    def numbers(self, *numbers, dtype=numpy.int64):
        return self.constant(numpy.array(numbers, dtype))

    def resize(self, by, **attributes):
        scales = None if by == "sizes" else self.numbers(1, 1, *by, dtype=numpy.float32)
        self.output(self.node("Resize", [self.x, None, scales, self.wanted if by == "sizes" else None], **attributes))


def nearest():
    model = Images()
    for (coordinates, mode), by in itertools.product(itertools.product(COORDINATES, NEAREST), ("sizes", (2, 1.5))):
        if by == "sizes" or coordinates != "align_corners":  # of which ONNX Runtime and ONNX's tests differ
            model.resize(by, mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=mode)
    model.resize((1, 3), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return model


def linear():
    model = Images()
    for coordinates, by in itertools.product(COORDINATES, ("sizes", (2, 1.25), (1, 4))):
        if by == "sizes" or coordinates != "align_corners":
            model.resize(by, mode="linear", coordinate_transformation_mode=coordinates)
    model.resize((2, 3), mode="linear", antialias=1)
    return model


def cubic():
    model = Images()
    for (coordinates, outside), by in itertools.product(itertools.product(COORDINATES, (0, 1)), ("sizes", (2, 1.5))):
        if by == "sizes" or coordinates != "align_corners":
            model.resize(by, mode="cubic", coordinate_transformation_mode=coordinates, exclude_outside=outside,
                         cubic_coeff_a=-0.5 if outside else -0.75)
    return model


def one_axis_constant():
    """The height's tables are constant, the width's are written by the run."""
    model = Images()
    x = model.node("GlobalAveragePool", [model.x])
    x = model.node("Add", [x, model.constant(numpy.arange(5, dtype=numpy.float32).reshape(1, 1, 5, 1))])
    x = model.node("Mul", [x, model.node("Slice", [model.x, model.numbers(0), model.numbers(1), model.numbers(2)])])
    sizes = model.node("Concat", [model.node("Shape", [model.x], end=2), model.numbers(8), model.node("Shape", [model.like], start=3)],
                       axis=0)
    model.output(*[model.node("Resize", [x, None, None, sizes], mode=mode) for mode in ("nearest", "linear", "cubic")])
    return model


def padded():
    """By halves, thirds and differences of extents, which crop in one run and fill in another."""
    model = Images()
    extents = model.node("Shape", [model.x], start=2)
    halves, more = model.node("Div", [extents, model.numbers(2)]), model.node("Sub", [model.node("Shape", [model.like], start=2), extents])
    thirds = model.node("Neg", [model.node("Div", [extents, model.numbers(3)])])
    none, axes, fill = model.numbers(0, 0), model.numbers(-2, -1), model.numbers(7.5, dtype=numpy.float32)
    fill = model.node("Squeeze", [fill])
    for mode, pads in [("constant", (none, more)), ("constant", (more, none)), ("constant", (halves, more)),
                       ("constant", (thirds, halves)), *[(mode, pads) for mode in ("edge", "reflect", "wrap")
                                                         for pads in ((halves, none), (none, halves), (halves, halves))],
                       ("edge", (thirds, halves))]:
        pads = model.node("Concat", list(pads), axis=0)
        model.output(model.node("Pad", [model.x, pads, fill if mode == "constant" else None, axes], mode=mode))
    return model


def extents(model, count):
    """All pairs of one axis's extents with some of the other's; in long tests more. The least and the largest are there."""
    rng = numpy.random.default_rng(5)
    pairs = list(itertools.product(*[range(model.dims["H"]["min"], model.dims["H"]["max"] + 1)] * 2))
    across = [pairs[k] for k in rng.permutation(len(pairs))]
    return [(1 + k % 2, p[0], q[0], p[1], q[1]) for k, (p, q) in enumerate(zip(pairs, across))][::1 if long_tests() else count]


def feeds_of(model, values):
    dims, rng = dict(zip("NHWPQ", values)), numpy.random.default_rng(values)
    return {described["name"]: rng.integers(-9, 10, [dims.get(extent, extent) for extent in described["shape"]]).astype(numpy.float32)
            for described in model.inputs}


def assert_close(got, expected):
    assert expected
    for name, array in expected.items():
        assert got[name].shape == array.shape, name
        numpy.testing.assert_allclose(got[name], array, rtol=0, atol=BOUND * max(1, numpy.abs(array).max(initial=0)))


MODELS = {build.__name__: build for build in (nearest, linear, cubic, one_axis_constant, padded)}
CASES = [(name, target) for k, name in enumerate(MODELS) for target in (TARGETS if long_tests() else TARGETS[k % 3:][:1])]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_every_extent_equals_onnx_runtime(compile, reference, tmp_path, name, target):
    """The nearest element is that of the reference: of two that are as near, ONNX Runtime's arithmetic chooses at times the
    other one."""
    model = MODELS[name]()
    path = model.write(tmp_path)
    with Module(compile(path, f"--target={target}")) as loaded, loaded.context(1) as alone, loaded.context(3) as three:
        for values in extents(model, 1 if name == "padded" else 3):
            feeds = feeds_of(model, values)
            got = alone.run(feeds)
            if name == "nearest":
                assert_same(got, reference.run(model, path, feeds))
            elif name == "padded":
                assert_same(got, model.onnx_run(feeds))
            else:
                assert_close(got, model.onnx_run(feeds))
            assert_same(three.run(feeds), got)


@pytest.mark.parametrize("name", half(list(MODELS), 0))
def test_aarch64_equals_onnx_runtime(run_for, tmp_path, name):
    model = MODELS[name]()
    feeds = feeds_of(model, (2, 3, 8, 7, 4))
    assert_close(run_for("aarch64-linux-gnu", model.write(tmp_path), feeds, model.outputs), model.onnx_run(feeds))


class Network(Model):
    """Of whole numbers, so that every order of sums has the same result."""

    def __init__(self, least, largest, multiple=1):
        super().__init__()
        self.rng = numpy.random.default_rng(1)
        for name in "HW":
            self.dim(name, least, largest // 2 // multiple * multiple, largest, multiple)
        self.x = self.input("x", "f32", [1, 5, "H", "W"])

    def conv(self, x, channels, kernels, op="Conv", size=3, **attributes):
        shape = (kernels, channels, size, size) if op == "Conv" else (channels, kernels, size, size)
        return self.node(op, [x, self.constant(self.rng.integers(-2, 3, shape).astype(numpy.float32))], **attributes)

    def numbers(self, *numbers):
        return self.constant(numpy.array(numbers))

    def extents(self, x):
        return self.node("Shape", [x], start=2)

    def resize(self, x, scales=None, like=None, **attributes):
        scales = None if scales is None else self.constant(numpy.array([1, 1, *scales], numpy.float32))
        sizes = None if like is None else self.node("Concat", [self.node("Shape", [x], end=2), self.extents(like)], axis=0)
        return self.node("Resize", [x, None, scales, sizes], coordinate_transformation_mode="asymmetric",
                         nearest_mode="floor", **attributes)

    def fitted(self, y, skip, fit):
        """y with the extents of skip, or skip with those of y."""
        more = self.node("Sub", [self.extents(skip), self.extents(y)])
        half = self.node("Div", [more, self.numbers(2)])
        if fit == "pad":
            pads = self.node("Concat", [half, self.node("Sub", [more, half])], axis=0)
            return skip, self.node("Pad", [y, pads, None, self.numbers(2, 3)])
        if fit == "crop the skip":
            ends = self.node("Add", [half, self.extents(y)])
            return self.node("Slice", [skip, half, ends, self.numbers(2, 3)]), y
        if fit == "crop":
            return skip, self.node("Slice", [y, self.numbers(0, 0), self.extents(skip), self.numbers(2, 3)])
        return skip, y


def u_net(down, up, fit, levels=2, bounds=None):
    """Down and up again, each time joined with the tensor of the level; its channels fill no block."""
    net = Network(*(bounds or (2**levels if down == "pool" else 1, 19)))
    x, channels, skips = net.node("Relu", [net.conv(net.x, 5, 12, pads=[1] * 4)]), 12, []
    for _ in range(levels):
        skips.append(x)
        if down == "pool":
            x = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
        x = net.node("Relu", [net.conv(x, channels, channels + 8, pads=[1] * 4, strides=[1, 1] if down == "pool" else [2, 2])])
        channels += 8
    for skip in reversed(skips):
        if up == "transposed":
            x = net.conv(x, channels, channels, "ConvTranspose", 2, strides=[2, 2])
        elif up == "twice":
            x = net.resize(x, scales=[2, 2], mode="nearest")
        else:
            x = net.resize(x, like=skip, mode="nearest")
        x = net.node("Concat", net.fitted(x, skip, fit), axis=1)
        x, channels = net.conv(x, 2 * channels - 8, channels - 8, size=1), channels - 8
        x = net.node("Clip", [x, net.constant(numpy.float32(-4)), net.constant(numpy.float32(4))])
    net.output(x)
    return net


U_NETS = [("pool", "transposed", "pad"), ("pool", "transposed", "crop the skip"), ("conv", "transposed", "crop"),
          ("pool", "like the skip", "none"), ("conv", "like the skip", "none"), ("conv", "twice", "crop"), ("pool", "twice", "pad")]
U_NET_CASES = [(form, target) for k, form in enumerate(U_NETS) for target in (TARGETS if long_tests() else TARGETS[k % 3:][:1])]


def planes(net, count):
    least, largest, multiple = (net.dims["H"].get(key, 1) for key in ("min", "max", "multiple"))
    if multiple > 1:
        return list(itertools.product(range(least, largest + 1, multiple), repeat=2))
    pairs = list(itertools.product(range(least, largest + 1), repeat=2))
    return pairs if long_tests() else [(h, largest + least - (h * count) % (largest - least + 1) - least) for h in range(least, largest + 1)]


def plane_of(net, h, w):
    return {"x": numpy.random.default_rng([h, w]).integers(-3, 4, (1, 5, h, w)).astype(numpy.float32)}


@pytest.mark.parametrize(("form", "target"), U_NET_CASES)
def test_u_nets_equal_onnx_runtime(compile, tmp_path, form, target):
    net = u_net(*form)
    module = compile(net.write(tmp_path), f"--target={target}", "--no-winograd", "--layout-search=greedy")
    with Module(module) as loaded, loaded.context(1) as alone, loaded.context(3) as three:
        for h, w in planes(net, 7):
            feeds = plane_of(net, h, w)
            got = alone.run(feeds)
            assert_same(got, net.onnx_run(feeds))
            assert_same(three.run(feeds), got)


def test_a_u_net_stays_blocked(rnncc, tmp_path):
    """Only the input and the output are transformed, and no kernel computes a shape."""
    path = u_net("pool", "like the skip", "none").write(tmp_path)
    done = rnncc("inspect", path, "--target=x86-64-v4", "--layout-search=greedy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("LayoutTransform") == 2 and "resize_nearest_blocked" in done.stdout
    assert not {line.split()[2] for line in done.stdout.splitlines() if line[:1].isdigit()} & {"Shape", "Sub", "Div"}


def windowed():
    """Each pixel less the largest of its window of 3 by 3, of a plane that is padded to whole windows, as attention does."""
    net = Network(4, 13)
    plane, axes, three = net.extents(net.x), net.numbers(2, 3), net.numbers(3)
    more = net.node("Mod", [net.node("Neg", [plane]), three])
    rows, columns = net.node("Split", [net.node("Div", [net.node("Add", [plane, more]), three])], outputs=2, num_outputs=2)
    x = net.node("Pad", [net.x, net.node("Concat", [net.numbers(0, 0), more], axis=0), None, axes])
    x = net.node("Reshape", [x, net.node("Concat", [net.numbers(1, 5), rows, three, columns, three], axis=0)])
    x = net.node("Reshape", [net.node("Transpose", [x], perm=[0, 2, 4, 3, 5, 1]), net.numbers(-1, 9, 5)])
    x = net.node("Sub", [x, net.node("ReduceMax", [x, net.numbers(1)])])
    x = net.node("Reshape", [x, net.node("Concat", [net.numbers(1), rows, columns, net.numbers(3, 3, 5)], axis=0)])
    x = net.node("Transpose", [x], perm=[0, 5, 1, 3, 2, 4])
    x = net.node("Reshape", [x, net.node("Concat", [net.numbers(1, 5), net.node("Add", [plane, more])], axis=0)])
    net.output(net.node("Slice", [x, net.numbers(0, 0), plane, axes]))
    return net


def test_windows_of_a_padded_plane_equal_onnx_runtime(compile, tmp_path):
    """Their number is a product of sums, each of an extent and a fraction of it that is rounded down."""
    net = windowed()
    with Module(compile(net.write(tmp_path))) as loaded, loaded.context(2) as context:
        for h, w in planes(net, 1):
            feeds = plane_of(net, h, w)
            assert_same(context.run(feeds), net.onnx_run(feeds))


def decoder(mode):
    net = Network(1, 9)
    x = net.resize(net.conv(net.x, 5, 21, pads=[1] * 4), scales=[2, 2], mode=mode)
    net.output(net.conv(net.resize(net.conv(x, 21, 16, pads=[1] * 4), scales=[1, 2], mode=mode), 16, 3, pads=[1] * 4))
    return net


@pytest.mark.optimised_here
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_blocked_images_of_few_pixels_are_resized(compile, tmp_path, mode):
    """Fewer than there are taps, too."""
    net = decoder(mode)
    module = compile(net.write(tmp_path), f"--target={TARGETS[len(mode) % 3]}", "--no-winograd", "--layout-search=greedy")
    with Module(module) as loaded, loaded.context(2) as context:
        for h, w in planes(net, 1):
            feeds = plane_of(net, h, w)
            got, expected = context.run(feeds), net.onnx_run(feeds)
            assert_close(got, expected) if mode == "cubic" else assert_same(got, expected)


def test_rows_of_one_pixel_read_no_other_row(compile, tmp_path):
    """Else what is no number, times a weight of 0, would be one of theirs."""
    model = Images()
    model.resize((1, 2), mode="linear")
    feeds = feeds_of(model, (1, 4, 1, 1, 1))
    feeds["x"][0, :, 1::2] = numpy.nan
    with Module(compile(model.write(tmp_path))) as loaded, loaded.context(1) as context:
        (got,) = context.run(feeds).values()
    assert_same({"y": got}, {"y": numpy.repeat(feeds["x"], 2, axis=3)})


@pytest.mark.parametrize(("down", "up"), [("pool", "transposed"), ("conv", "twice")])
def test_a_u_net_that_takes_multiples_only_runs_at_those(compile, rnncc, tmp_path, down, up):
    net = u_net(down, up, "none", bounds=(4, 24, 4))
    path = net.write(tmp_path)
    with Module(compile(path, "--no-winograd", "--layout-search=greedy")) as loaded, loaded.context(2) as context:
        for h, w in planes(net, 1):
            feeds = plane_of(net, h, w)
            assert_same(context.run(feeds), net.onnx_run(feeds))
        for h, w in ((18, 8), (8, 23)):
            with pytest.raises(ModuleError, match="was compiled for multiples of 4"):
                context.run(plane_of(net, h, w))
    shown = rnncc("inspect", path).stdout
    assert shown.count("4..24, optimised for 12, multiples of 4") == 2 and "[1, 5, H, W]" in shown
    written = tmp_path / "written.json"
    assert rnncc(path, "--emit=graph", "-o", written).returncode == 0
    assert json.loads(written.read_text())["dims"] == net.dims
    assert rnncc(path, "--emit=h", "-o", "-").stdout.count("_MULTIPLE = 4,") == 2
    done = rnncc("inspect", path, "--dim=H=4..22", "--dim=W=8..16..24:8")
    assert done.returncode == 0 and "which each run checks" in done.stderr and "bound it so, as --dim 'H=4..2" in done.stderr, done.stderr
    with Module(compile(path, "--dim=H=4..22", "--dim=W=8..16..24:8", "--no-winograd")) as loaded, loaded.context(2) as context:
        for h in (8, 20):
            feeds = plane_of(net, h, 16)
            assert_same(context.run(feeds), net.onnx_run(feeds))
        for h in (18, 21):
            with pytest.raises(ModuleError, match="value"):
                context.run(plane_of(net, h, 16))


@pytest.mark.parametrize("given", ["H=4..22:4", "H=6..24:4", "H=4..10..24:4", "H=4..24:0", "H=4..24:", "H=4..24:4:4", "H=4..24:-4"])
def test_bounds_that_are_no_multiples_are_refused(rnncc, tmp_path, given):
    done = rnncc("inspect", Network(4, 24, 4).write(tmp_path), f"--dim={given}")
    assert done.returncode == 2 and "multiples of STEP" in done.stderr


def test_bounds_in_a_file_that_are_no_multiples_are_refused(rnncc, tmp_path):
    net = Network(4, 22, 4)
    net.output(net.node("Relu", [net.x]))
    done = rnncc("inspect", net.write(tmp_path))
    assert done.returncode == 2 and "expected multiples of 4, found 4, 8, 22" in done.stderr


def test_extents_that_are_not_equal_say_where_they_are(rnncc, tmp_path):
    """A U-Net that takes multiples of 4 only, and a sum: each run checks them."""
    net = u_net("pool", "transposed", "none")
    net.output(net.node("Add", [net.x, net.resize(net.node("MaxPool", [net.x], kernel_shape=[3, 3], strides=[3, 3]), scales=[3, 3])]))
    done = rnncc("inspect", net.write(tmp_path))
    assert done.returncode == 0
    for said in ("2*floor(H / 4) and floor(H / 2) are equal where H is a multiple of 4: bound it so, as --dim 'H=",
                 "H and 3*floor(H / 3) are equal where H is a multiple of 3", "or pad the model's input and crop its output (H: axis 2 of `x`)"):
        assert said in done.stderr, done.stderr


def test_what_is_refused_says_where_and_what_would_be_right(rnncc, tmp_path):
    model = Images()
    model.resize((1, 1.3), mode="linear")
    model.resize("sizes", mode="linear", antialias=1)
    pads = model.node("Concat", [model.numbers(0, 0), model.node("Shape", [model.like], start=2)], axis=0)
    model.output(model.node("Pad", [model.x, pads, None, model.numbers(2, 3)], mode="reflect"))
    done = rnncc("inspect", model.write(tmp_path))
    assert done.returncode == 2
    for said in ("axis 3 of `x` f32[N, 3, H, W] times 1.29999995, which may be rounded; its extent must be constant",
                 "`antialias` where axis 2 of `x` f32[N, 3, H, W] shrinks to P; it needs constant extents, or `scales`",
                 "a pad of P on axis 2 of `x` f32[N, 3, H, W]; mode \"reflect\" allows at most H - 1 at all extents"):
        assert said in done.stderr


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_a_constant_is_padded_to_nothing(compile, reference, tmp_path, dtype):
    """Where T is 1, all but the first step are none, as a shift by one step makes it that MobileBERT reads its neighbours
    by: on this axis, and on others beside it."""
    model = Model()
    x = model.input("x", dtype, [2, model.dim("T", 1, 4, 9), 3])
    one, most, axis = (model.constant(numpy.array([number])) for number in (1, numpy.iinfo(numpy.int64).max, 1))
    rest, seven = model.node("Slice", [x, one, most, axis]), model.constant(numpy.array(7, TYPES[dtype][0]))
    for pads, fill in (([0, 0, 0, 0, 1, 0], None), ([0, 2, 0, 0, 0, 0], seven), ([1, 1, 2, 0, 1, 1], seven),
                       ([1, 1, -1, 0, 0, -1], seven)):
        model.output(model.node("Pad", [rest, model.constant(numpy.array(pads)), fill]))
    path = model.write(tmp_path)
    for T in (1, 2, 9):
        feeds = {"x": numpy.random.default_rng(T).integers(-9, 10, (2, T, 3)).astype(TYPES[dtype][0])}
        expected = model.onnx_run(feeds)
        assert_same(run_module(compile(path), feeds), expected)
        assert_same(reference.run(model, path, feeds), expected)


@pytest.mark.every_case
@pytest.mark.parametrize("pads", [(5, 4), (0, 11), (-1, 7), (6, -1)])
def test_what_starts_again_does_so_as_often_as_a_pad_is_long(compile, reference, tmp_path, pads):
    """Of a known extent, of one that the run knows, and of a constant; what is cropped is cropped first."""
    model = Model()
    width, x = model.dim("W", 2, 4, 9), numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    for data in (model.input("x", "f32", [2, 3]), model.input("r", "f32", [2, width]), model.constant(x)):
        ends = model.constant(numpy.array([3, pads[0], 1, pads[1]]))
        model.output(model.node("Pad", [data, ends], mode="wrap"))
    path = model.write(tmp_path)
    module = compile(path)
    for extent in (2, 3, 9):
        feeds = {"x": x, "r": numpy.arange(2 * extent, dtype=numpy.float32).reshape(2, extent)}
        expected = model.onnx_run(feeds)
        assert_same(run_module(module, feeds, threads=(1, 2)), expected)
        assert_same(reference.run(model, path, feeds), expected)


def test_nothing_does_not_start_again(rnncc, tmp_path):
    model = Model()
    x = model.input("x", "f32", [2])
    empty, pads = model.constant(numpy.zeros(0, numpy.float32)), model.constant(numpy.array([1, 1]))
    nothing = model.node("Pad", [empty, pads], mode="wrap")
    model.output(model.node("Add", [x, nothing]))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 2 and 'mode "wrap" allows at most 0' in done.stderr
