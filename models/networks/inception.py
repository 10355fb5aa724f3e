# SPDX-License-Identifier: MIT
"""Inception-v3: C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016, table 1,
with the channel counts of its authors' published network, and without the auxiliary classifier, which only training
uses. Blocks are named for the grid they stand on: 35x35, 17x17 and 8x8 pixels of a 299x299 image."""
from networks.builder import Network

ACROSS, DOWN = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))  # kernel, stride and padding


def conv(net, x, channels, kernel, stride=1, pad=0):
    """All have batch normalisation and ReLU."""
    return net.relu(net.batch_norm(net.conv(x, net.scaled(channels), kernel, stride, pad), epsilon=1e-3))


def chain(net, x, *layers):
    """Each layer: the arguments of conv."""
    for layer in layers:
        x = conv(net, x, *layer)
    return x


def stem(net):
    x = chain(net, net.image, (32, 3, 2), (32, 3), (64, 3, 1, 1))
    x = chain(net, net.max_pool(x, 3, 2), (80, 1), (192, 3))
    return net.max_pool(x, 3, 2)


def grid35(net, x, pooled):
    return net.concat(conv(net, x, 64, 1),
                      chain(net, x, (48, 1), (64, 5, 1, 2)),
                      chain(net, x, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
                      conv(net, net.average_pool(x, 3, 1, 1), pooled, 1))


def shrink35(net, x):
    return net.concat(conv(net, x, 384, 3, 2),
                      chain(net, x, (64, 1), (96, 3, 1, 1), (96, 3, 2)),
                      net.max_pool(x, 3, 2))


def grid17(net, x, narrow):
    return net.concat(conv(net, x, 192, 1),
                      chain(net, x, (narrow, 1), (narrow, *ACROSS), (192, *DOWN)),
                      chain(net, x, (narrow, 1), (narrow, *DOWN), (narrow, *ACROSS), (narrow, *DOWN), (192, *ACROSS)),
                      conv(net, net.average_pool(x, 3, 1, 1), 192, 1))


def shrink17(net, x):
    return net.concat(chain(net, x, (192, 1), (320, 3, 2)),
                      chain(net, x, (192, 1), (192, *ACROSS), (192, *DOWN), (192, 3, 2)),
                      net.max_pool(x, 3, 2))


def grid8(net, x):
    def split(y):
        return conv(net, y, 384, (1, 3), 1, (0, 1)), conv(net, y, 384, (3, 1), 1, (1, 0))

    return net.concat(conv(net, x, 320, 1),
                      *split(conv(net, x, 384, 1)),
                      *split(chain(net, x, (448, 1), (384, 3, 1, 1))),
                      conv(net, net.average_pool(x, 3, 1, 1), 192, 1))


BLOCKS = [(grid35, 32), (grid35, 64), (grid35, 64), (shrink35,), (grid17, 128), (grid17, 160), (grid17, 160),
          (grid17, 192), (shrink17,), (grid8,), (grid8,)]


def inception(**options):
    net = Network("inception_v3", **{"size": 299, **options})
    with net.scope("stem"):
        x = stem(net)
    for number, (block, *arguments) in enumerate(BLOCKS, 1):
        with net.scope(f"block{number}"):
            x = block(net, x, *arguments)
    return net.classifier(net.global_pool(x))
