# SPDX-License-Identifier: MIT
"""ResNet, version 1: K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1.

A stage's first bottleneck halves the image in its first 1x1 convolution, as in the paper; PyTorch's does in the 3x3.
"""
from networks.builder import Network

UNITS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
BRANCH = 0.3  # what a unit adds is less than what it adds to: the sum of 36 units is of the same order


def basic(net, x, channels, stride):
    y = net.relu(net.batch_norm(net.conv(x, channels, 3, stride, pad=1)))
    return net.batch_norm(net.conv(y, channels, 3, pad=1), BRANCH)


def bottleneck(net, x, channels, stride):
    y = net.relu(net.batch_norm(net.conv(x, channels // 4, 1, stride)))
    y = net.relu(net.batch_norm(net.conv(y, channels // 4, 3, pad=1)))
    return net.batch_norm(net.conv(y, channels, 1), BRANCH)


def unit(net, x, channels, stride, branch):
    changed = stride > 1 or net.channels[x] != channels
    shortcut = net.batch_norm(net.conv(x, channels, 1, stride)) if changed else x
    total = net.add(branch(net, x, channels, stride), shortcut)
    return net.relu(total) if changed else net.relu(total, left=1)  # what passes unchanged is not negative


def resnet(depth, **options):
    net = Network(f"resnet{depth}", **{"size": 224, **options})
    branch, expansion = (basic, 1) if depth < 50 else (bottleneck, 4)
    with net.scope("stem"):
        x = net.relu(net.batch_norm(net.conv(net.image, net.scaled(64), 7, 2, pad=3)))
        x = net.max_pool(x, 3, 2, pad=1)
    for stage, units in enumerate(UNITS[depth]):
        channels = expansion * net.scaled(64 << stage)
        for number in range(units):
            with net.scope(f"stage{stage + 1}.unit{number + 1}"):
                x = unit(net, x, channels, 2 if stage and not number else 1, branch)
    return net.classifier(net.global_pool(x))
