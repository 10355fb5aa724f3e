# SPDX-License-Identifier: MIT
"""DenseNet-BC: G. Huang et al., Densely Connected Convolutional Networks, CVPR 2017, table 1: normalisation and ReLU
come before each convolution, and a layer's result is appended to its input."""
from networks.builder import Network

# depth: (layers of each block, channels that a layer appends, channels of the stem)
SIZES = {121: ((6, 12, 24, 16), 32, 64), 161: ((6, 12, 36, 24), 48, 96), 169: ((6, 12, 32, 32), 32, 64),
         201: ((6, 12, 48, 32), 32, 64)}
# Appended channels have a mean, which normalisation with seeded statistics does not remove, and which the builder does
# not know: the pooled features of all four networks have some ten times the mean square that it estimates.
DRIFT = 10


def normed_conv(net, x, channels, kernel, pad=0):
    return net.conv(net.relu(net.batch_norm(x)), channels, kernel, pad=pad)


def dense_layer(net, x, growth):
    y = normed_conv(net, x, 4 * growth, 1)
    return net.concat(x, normed_conv(net, y, growth, 3, pad=1))


def transition(net, x):
    return net.average_pool(normed_conv(net, x, net.channels[x] // 2, 1), 2, 2)


def densenet(depth, **options):
    net = Network(f"densenet{depth}", **{"size": 224, **options})
    blocks, growth, stem = SIZES[depth]
    with net.scope("stem"):
        x = net.relu(net.batch_norm(net.conv(net.image, net.scaled(stem), 7, 2, pad=3)))
        x = net.max_pool(x, 3, 2, pad=1)
    for block, layers in enumerate(blocks, 1):
        for number in range(1, layers + 1):
            with net.scope(f"block{block}.layer{number}"):
                x = dense_layer(net, x, net.scaled(growth))
        if block < len(blocks):
            with net.scope(f"transition{block}"):
                x = transition(net, x)
    with net.scope("tail"):
        x = net.relu(net.batch_norm(x))
    features = net.global_pool(x)
    return net.classifier(net.known(features, net.channels[features], DRIFT * net.mean_square[features]))
