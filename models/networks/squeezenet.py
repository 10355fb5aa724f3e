# SPDX-License-Identifier: MIT
"""SqueezeNet 1.1: F. Iandola et al., SqueezeNet: AlexNet-level accuracy with 50x fewer parameters, 2016, section 3, as
its authors' repository has it in version 1.1: a 3x3 stem, and the image shrunk earlier."""
from networks.builder import Network

# Groups of fire modules: channels of the squeezing, and of each of the two expanding convolutions. The image shrinks
# before each group.
STAGES = [[(16, 64), (16, 64)], [(32, 128), (32, 128)], [(48, 192), (48, 192), (64, 256), (64, 256)]]


def biased(net, x, channels, kernel, pad=0):
    return net.relu(net.conv(x, net.scaled(channels), kernel, pad=pad, bias=True))


def fire(net, x, squeezed, expanded):
    y = biased(net, x, squeezed, 1)
    return net.concat(biased(net, y, expanded, 1), biased(net, y, expanded, 3, pad=1))


def squeezenet(**options):
    net = Network("squeezenet", **{"size": 224, **options})
    with net.scope("stem"):
        x = net.relu(net.conv(net.image, net.scaled(64), 3, 2, bias=True))
    for stage, modules in enumerate(STAGES, 1):
        x = net.max_pool(x, 3, 2, ceil=True)
        for number, (squeezed, expanded) in enumerate(modules, 1):
            with net.scope(f"stage{stage}.fire{number}"):
                x = fire(net, x, squeezed, expanded)
    with net.scope("classifier"):
        x = net.relu(net.conv(x, net.classes, 1, bias=True))
        return net.probabilities(net.flat(net.global_pool(x)))
