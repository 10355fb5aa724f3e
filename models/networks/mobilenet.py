# SPDX-License-Identifier: MIT
"""MobileNet-v2: M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018, table 2."""
from networks.builder import Network

# (expansion, channels, units, stride of the first)
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
BRANCH = 0.5  # what a unit adds is less than what it adds to


def normed(net, x, channels, kernel, stride=1, groups=1):
    return net.relu6(net.batch_norm(net.conv(x, channels, kernel, stride, kernel // 2, groups)))


def unit(net, x, expansion, channels, stride):
    """Widens, filters each channel by itself, and narrows without an activation."""
    wide = expansion * net.channels[x]
    y = normed(net, x, wide, 1) if expansion > 1 else x
    y = net.conv(normed(net, y, wide, 3, stride, groups=wide), channels, 1)
    if stride > 1 or net.channels[x] != channels:
        return net.batch_norm(y)
    return net.add(x, net.batch_norm(y, BRANCH))


def mobilenet(**options):
    net = Network("mobilenet_v2", **{"size": 224, **options})
    with net.scope("stem"):
        x = normed(net, net.image, net.scaled(32), 3, 2)
    for stage, (expansion, channels, units, stride) in enumerate(STAGES, 1):
        for number in range(units):
            with net.scope(f"stage{stage}.unit{number + 1}"):
                x = unit(net, x, expansion, net.scaled(channels), stride if not number else 1)
    with net.scope("tail"):
        x = normed(net, x, net.scaled(1280), 1)
    return net.classifier(net.global_pool(x))
