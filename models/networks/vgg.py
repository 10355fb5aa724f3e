# SPDX-License-Identifier: MIT
"""VGG: K. Simonyan, A. Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, ICLR 2015,
table 1, configurations A, B, D and E. The dropout between its dense layers does nothing at inference: left out."""
from networks.builder import LOGITS, Network

CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
CHANNELS = (64, 128, 256, 512, 512)


def vgg(depth, **options):
    options = {"size": 224, **options}
    net = Network(f"vgg{depth}", **options)
    x = net.image
    for stage, (convolutions, channels) in enumerate(zip(CONVOLUTIONS[depth], CHANNELS), 1):
        with net.scope(f"stage{stage}"):
            for _ in range(convolutions):
                x = net.relu(net.conv(x, net.scaled(channels), 3, pad=1, bias=True))
            x = net.max_pool(x, 2, 2)
    with net.scope("classifier"):
        x = net.flat(x, (options["size"] // 32) ** 2)
        for _ in range(2):
            x = net.relu(net.dense(x, net.scaled(4096)))
        return net.probabilities(net.dense(x, net.classes, LOGITS))
