# SPDX-License-Identifier: MIT
"""Networks of images and points, as people write them in PyTorch."""
import torch
from torch import nn

from pytorch.modules import network


class SqueezedBlock(nn.Module):
    """A residual block whose channels are weighted (Hu et al., 2018)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                                  nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(outputs, 4, 1), nn.ReLU(), nn.Conv2d(4, outputs, 1),
                                   nn.Sigmoid())
        self.fit = (nn.Identity() if stride == 1 and inputs == outputs else
                    nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)))

    def forward(self, x):
        y = self.body(x)
        return torch.relu(y * self.weigh(y) + self.fit(x))


class SeResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                                      nn.MaxPool2d(3, 2, 1), SqueezedBlock(16, 16, 1), SqueezedBlock(16, 24, 2))
        self.out = nn.Linear(24, 10)

    def forward(self, x):
        return self.out(self.features(x).mean((2, 3)))


@network
def se_resnet():
    return SeResNet(), (torch.randn(2, 3, 48, 56),), ({0: "batch", 2: "height", 3: "width"},)


class FusedBottleneck(nn.Module):
    """Expand, depthwise, weigh the channels, project, with SiLU (Tan and Le, 2019)."""

    def __init__(self, channels=12):
        super().__init__()
        hidden = 4 * channels
        self.expand = nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU(),
                                    nn.Conv2d(hidden, hidden, 5, 1, 2, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
                                    nn.SiLU())
        self.weigh = nn.Sequential(nn.Conv2d(hidden, 3, 1), nn.SiLU(), nn.Conv2d(3, hidden, 1), nn.Sigmoid())
        self.project = nn.Sequential(nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.expand(x)
        return x + self.project(y * self.weigh(y.mean((2, 3), keepdim=True)))


@network
def efficient_net():
    body = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.SiLU(), FusedBottleneck(), FusedBottleneck(), nn.Conv2d(12, 24, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(24, 5))
    return body, (torch.randn(2, 3, 40, 32),), ({0: "batch", 2: "height", 3: "width"},)


class ConvNextBlock(nn.Module):
    """A 7x7 depthwise convolution, then a row's feed-forward with LayerNorm (Liu et al., 2022)."""

    def __init__(self, channels=16):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(channels, channels, 7, padding=3, groups=channels), nn.LayerNorm(channels)
        self.grow, self.shrink = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.shrink(nn.functional.gelu(self.grow(y)))
        return x + y.permute(0, 3, 1, 2)


@network
def conv_next():
    body = nn.Sequential(nn.Conv2d(3, 16, 4, 4), ConvNextBlock(), ConvNextBlock(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.LayerNorm(16), nn.Linear(16, 6))
    return body, (torch.randn(2, 3, 40, 48),), ({0: "batch"},)


class VisionTransformer(nn.Module):
    """Patches as words (Dosovitskiy et al., 2021)."""

    def __init__(self, width=24, size=32, patch=8):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 1 + (size // patch)**2, width))
        self.layers = nn.ModuleList([nn.MultiheadAttention(width, 3, batch_first=True) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(4)])
        self.feeds = nn.ModuleList([nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width)) for _ in range(2)])
        self.out = nn.Linear(width, 7)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.size(0), -1, -1), x], 1) + self.places
        for k, (layer, feed) in enumerate(zip(self.layers, self.feeds, strict=True)):
            y = self.norms[2 * k](x)
            x = x + layer(y, y, y, need_weights=False)[0]
            x = x + feed(self.norms[2 * k + 1](x))
        return self.out(x[:, 0])


@network
def vision_transformer():
    return VisionTransformer(), (torch.randn(2, 3, 32, 32),), ({0: "batch"},)


class Mixer(nn.Module):
    """Products over places and over channels in turn (Tolstikhin et al., 2021)."""

    def __init__(self, places=12, channels=16):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.over_places = nn.Sequential(nn.Linear(places, 20), nn.GELU(approximate="tanh"), nn.Linear(20, places))
        self.over_channels = nn.Sequential(nn.Linear(channels, 32), nn.GELU(), nn.Linear(32, channels))

    def forward(self, x):
        x = x + self.over_places(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.norm2(x))


@network
def mixer():
    return Mixer(), (torch.randn(2, 12, 16),), ({0: "batch"},)


class SuperResolution(nn.Module):
    """Channels become pixels (Shi et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, x):
        return self.body(x).clamp(0, 1)


@network
def super_resolution():
    return SuperResolution(), (torch.rand(1, 1, 30, 26),), ({0: "batch", 2: "height", 3: "width"},)


class StyleTransfer(nn.Module):
    """Reflected borders, instance normalisation, up again by nearest pixels (Johnson et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.ReflectionPad2d(2), nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                                  nn.ReflectionPad2d(1), nn.Conv2d(8, 12, 3, 2), nn.InstanceNorm2d(12, affine=True), nn.ReLU())
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.ReflectionPad2d(1), nn.Conv2d(12, 3, 3), nn.Sigmoid())

    def forward(self, x):
        return self.up(self.down(x))


@network
def style_transfer():
    return StyleTransfer(), (torch.rand(1, 3, 28, 36),), ({0: "batch"},)


class Segmenter(nn.Module):
    """Dilated convolutions side by side, and the whole image's mean (Chen et al., 2017)."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.ELU())
        self.branches = nn.ModuleList([nn.Conv2d(8, 6, 3, padding=rate, dilation=rate) for rate in (1, 2, 4)])
        self.whole = nn.Conv2d(8, 6, 1)
        self.out = nn.Conv2d(24, 4, 1)

    def forward(self, image):
        x = self.stem(image)
        whole = nn.functional.adaptive_avg_pool2d(x, 1)
        whole = nn.functional.interpolate(self.whole(whole), size=x.shape[2:], mode="bilinear", align_corners=False)
        y = self.out(torch.relu(torch.cat([branch(x) for branch in self.branches] + [whole], 1)))
        return nn.functional.interpolate(y, size=image.shape[2:], mode="bilinear", align_corners=False)


@network
def segmenter():
    return Segmenter(), (torch.randn(1, 3, 32, 40),), ({0: "batch"},)


class Pyramid(nn.Module):
    """Features of two sizes, the coarse added to the fine, and boxes and classes of both (Lin et al., 2017)."""

    def __init__(self):
        super().__init__()
        self.fine = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU())
        self.coarse = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.side1, self.side2 = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1)
        self.boxes, self.classes = nn.Conv2d(8, 12, 3, padding=1), nn.Conv2d(8, 9, 3, padding=1)

    def forward(self, x):
        fine = self.fine(x)
        coarse = self.side2(self.coarse(fine))
        fine = self.side1(fine) + nn.functional.interpolate(coarse, scale_factor=2, mode="nearest")
        levels = [fine, coarse]
        boxes = [self.boxes(y).permute(0, 2, 3, 1).reshape(x.size(0), -1, 4) for y in levels]
        classes = [self.classes(y).permute(0, 2, 3, 1).reshape(x.size(0), -1, 3) for y in levels]
        return torch.cat(boxes, 1), torch.cat(classes, 1).sigmoid()


@network
def pyramid():
    return Pyramid(), (torch.randn(1, 3, 32, 48),), ({0: "batch"},)


class PointNet(nn.Module):
    """Points in any order (Qi et al., 2017)."""

    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1), nn.ReLU())
        self.out = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, points):
        return self.out(self.each(points.transpose(1, 2)).max(2).values)


@network
def point_net():
    return PointNet(), (torch.randn(2, 20, 3),), ({0: "batch", 1: "length"},)


class SpatialTransformer(nn.Module):
    """An image is turned by angles that the network reads from it (Jaderberg et al., 2015)."""

    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(nn.Conv2d(1, 4, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(),
                                    nn.Linear(16, 6))
        self.read = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(6, 3))

    def forward(self, image):
        straight = torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        turn = straight + 0.2 * torch.tanh(self.locate(image)).view(-1, 2, 3)
        grid = nn.functional.affine_grid(turn, [image.size(0), 1, 20, 20], align_corners=False)
        return self.read(nn.functional.grid_sample(image, grid, align_corners=False))


@network
def spatial_transformer():
    return SpatialTransformer(), (torch.randn(2, 1, 20, 20),), ({0: "batch"},)


class GhostModule(nn.Module):
    """Half of the channels by a cheap depthwise convolution of the other half (Han et al., 2020)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(inputs, outputs // 2, 1), nn.BatchNorm2d(outputs // 2), nn.Hardswish())
        self.cheap = nn.Sequential(nn.Conv2d(outputs // 2, outputs // 2, 3, 1, 1, groups=outputs // 2), nn.Hardswish())

    def forward(self, x):
        y = self.main(x)
        return torch.cat([y, self.cheap(y)], 1)


@network
def ghost_net():
    body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), GhostModule(8, 16), nn.AvgPool2d(2), GhostModule(16, 24),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 5))
    return body, (torch.randn(2, 3, 32, 40),), ({0: "batch", 2: "height", 3: "width"},)


class PictureAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 12, 3, 2, 1), nn.LeakyReLU(0.2))
        self.encode, self.back = nn.Linear(12 * 7 * 7, 10), nn.Linear(10, 12 * 7 * 7)
        self.up = nn.Sequential(nn.ConvTranspose2d(12, 8, 3, 2, 1, output_padding=1), nn.SELU(),
                                nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        code = self.encode(self.down(x).flatten(1))
        return self.up(self.back(code).unflatten(1, (12, 7, 7))), code


@network
def picture_autoencoder():
    return PictureAutoencoder(), (torch.rand(2, 1, 28, 28),), ({0: "batch"},)


@network
def picture_generator():
    """Pictures of 64x64 from noise (DCGAN: Radford et al., 2016)."""
    channels = (256, 128, 64, 32)
    layers = [nn.ConvTranspose2d(100, channels[0], 4, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU()]
    for inputs, outputs in zip(channels, channels[1:]):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    layers += [nn.ConvTranspose2d(channels[-1], 3, 4, 2, 1), nn.Tanh()]
    return nn.Sequential(*layers), (torch.randn(1, 100, 1, 1),), ({0: "batch"},)


class FrameLstm(nn.Module):
    """A film: convolutions of each picture, an LSTM over them (Donahue et al., 2015)."""

    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.lstm, self.out = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, film):
        batch, frames = film.shape[:2]
        y, _ = self.lstm(self.look(film.flatten(0, 1)).view(batch, frames, -1))
        return self.out(y.mean(1))


@network
def frame_lstm():
    return FrameLstm(), (torch.randn(2, 5, 3, 24, 24),), ({0: "batch", 1: "length"},)
