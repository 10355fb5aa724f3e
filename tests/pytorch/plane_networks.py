# SPDX-License-Identifier: MIT
"""Networks whose planes shrink and grow again, as people write them in PyTorch, for any height and width, or length:
PLANES[name]() -> (module, example inputs, dynamic axes)."""
import torch
from torch import nn
from torch.nn import functional

PLANES = {}
LEAST, LARGEST = 18, 70  # extents
NORMS = {"batch": {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}, "instance": {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d}}


def plane(build):
    PLANES[build.__name__] = build
    return build


def image(module):
    return module, (torch.randn(1, 3, 37, 54),), ({0: "batch", 2: "height", 3: "width"},)


def sound(module, length=65):
    return module, (torch.randn(1, 3, length),), ({0: "batch", 2: "length"},)


def twice(inputs, outputs, norm, axes):
    conv = (nn.Conv1d, nn.Conv2d)[axes - 1]

    def normal():
        return nn.GroupNorm(2, outputs) if norm == "group" else NORMS[norm][axes](outputs)

    return nn.Sequential(conv(inputs, outputs, 3, padding=1), normal(), nn.ReLU(),
                         conv(outputs, outputs, 3, padding=1), normal(), nn.ReLU())


class UNet(nn.Module):
    """up(y, skip) brings y to the double extents, or to those of skip; fit(y, skip) makes both alike (Ronneberger et al.,
    2015)."""

    def __init__(self, levels, down="pool", up=None, fit=None, norm="batch", axes=2):
        super().__init__()
        conv, transposed = ((nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d))[axes - 1]
        widths = [8 * 2**k for k in range(levels + 1)]
        pairs = list(zip(widths, widths[1:]))
        self.up, self.fit = up or (lambda y, skip: y), fit or (lambda y, skip: (y, skip))
        self.first = twice(3, 8, norm, axes)
        pool = (nn.MaxPool1d, nn.MaxPool2d)[axes - 1]
        self.shrink = nn.ModuleList([pool(2) if down == "pool" else conv(fine, fine, 3, 2, 1) for fine, _ in pairs])
        self.down = nn.ModuleList([twice(fine, coarse, norm, axes) for fine, coarse in pairs])
        self.grow = nn.ModuleList([conv(coarse, fine, 1) if up else transposed(coarse, fine, 2, 2) for fine, coarse in pairs])
        self.join = nn.ModuleList([twice(2 * fine, fine, norm, axes) for fine, _ in pairs])
        self.out = conv(8, 2, 1)

    def forward(self, x):
        x, skips = self.first(x), []
        for shrink, down in zip(self.shrink, self.down):
            skips.append(x)
            x = down(shrink(x))
        for grow, join, skip in zip(reversed(self.grow), reversed(self.join), reversed(skips)):
            y, skip = self.fit(self.up(grow(x), skip), skip)
            x = join(torch.cat([skip, y], 1))
        return self.out(x)


def doubled(mode, **options):
    return lambda y, skip: functional.interpolate(y, scale_factor=2, mode=mode, **options)


def resized(mode, **options):
    return lambda y, skip: functional.interpolate(y, size=skip.shape[2:], mode=mode, **options)


def padded(y, skip):
    """Centred, as in the network that most people copied."""
    pads = []
    for axis in reversed(range(2, skip.dim())):
        more = skip.size(axis) - y.size(axis)
        pads += [more // 2, more - more // 2]
    return functional.pad(y, pads), skip


def edge_padded(y, skip):
    return functional.pad(y, [0, skip.size(3) - y.size(3), 0, skip.size(2) - y.size(2)], mode="replicate"), skip


def cropped(y, skip):
    """The larger one is y."""
    for axis in range(2, skip.dim()):
        y = y.narrow(axis, 0, skip.size(axis))
    return y, skip


def centre_of_skip(y, skip):
    for axis in range(2, skip.dim()):
        begin = (skip.size(axis) - y.size(axis)) // 2
        skip = skip[(slice(None),) * axis + (slice(begin, begin + y.size(axis)),)]
    return y, skip


@plane
def original_u_net():
    return image(UNet(3, fit=padded))


@plane
def bilinear_u_net():
    return image(UNet(3, up=doubled("bilinear", align_corners=True), fit=padded))


@plane
def half_pixel_u_net():
    return image(UNet(2, up=doubled("bilinear"), fit=padded, norm="group"))


@plane
def replicating_u_net():
    return image(UNet(2, up=doubled("nearest"), fit=edge_padded))


@plane
def strided_u_net():
    return image(UNet(4, "conv", up=resized("nearest"), norm="group"))


@plane
def instance_u_net():
    return image(UNet(3, "conv", up=resized("bilinear"), norm="instance"))


@plane
def bicubic_u_net():
    return image(UNet(2, up=resized("bicubic")))


@plane
def cropping_u_net():
    return image(UNet(3, "conv", up=doubled("nearest"), fit=cropped))


@plane
def valid_u_net():
    return image(UNet(2, fit=centre_of_skip, norm="group"))


@plane
def wave_u_net():
    """Of sound (Stoller et al., 2018)."""
    return sound(UNet(3, "conv", up=doubled("linear"), fit=cropped, axes=1))


@plane
def resizing_wave_u_net():
    return sound(UNet(3, "conv", up=resized("linear"), norm="group", axes=1))


class ToMultiple(nn.Module):
    """Pads the input to what the levels divide, and cuts the output."""

    def __init__(self, network, multiple, mode):
        super().__init__()
        self.network, self.multiple, self.mode = network, multiple, mode

    def forward(self, x):
        height, width = x.shape[-2:]
        down, right = -height % self.multiple, -width % self.multiple
        y = functional.pad(x, [right // 2, right - right // 2, down // 2, down - down // 2], mode=self.mode)
        y = self.network(y)
        return y[..., down // 2:down // 2 + height, right // 2:right // 2 + width]


@plane
def reflecting_to_multiple():
    return image(ToMultiple(UNet(2), 4, "reflect"))


@plane
def zeros_to_multiple():
    return image(ToMultiple(UNet(3, "conv"), 8, "constant"))


class PyramidSegmenter(nn.Module):
    """Three sizes of features, the coarse added to the fine, the whole image's mean, and a head of the image's size (Lin et
    al., 2017)."""

    def __init__(self, mode, head, corners):
        super().__init__()
        self.mode, self.head, self.corners = mode, head, corners
        self.fine = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.middle = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.coarse = nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.sides = nn.ModuleList([nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 1)])
        self.classes, self.edges = nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        fine = self.fine(x)
        middle = self.middle(fine)
        top = self.sides[2](self.coarse(middle))
        second = self.sides[1](middle) + functional.interpolate(top, size=middle.shape[-2:], mode=self.mode)
        first = self.sides[0](fine) + functional.interpolate(second, size=fine.shape[-2:], mode=self.mode)
        whole = functional.adaptive_avg_pool2d(top, 1)
        first = first + functional.interpolate(whole, size=first.shape[-2:], mode="bilinear", align_corners=False)
        classes = functional.interpolate(self.classes(first), size=x.shape[-2:], mode=self.head, align_corners=self.corners)
        return classes, self.edges(second)


@plane
def nearest_pyramid():
    return image(PyramidSegmenter("nearest", "bilinear", False))


@plane
def bicubic_pyramid():
    return image(PyramidSegmenter("bilinear", "bicubic", True))


def plain_u_net():
    """Takes multiples of 8 only: the tensors that it joins must have halved without a rest. Not of PLANES."""
    return UNet(3), (torch.randn(1, 3, 40, 56),), ({0: "batch", 2: "height", 3: "width"},)
