# SPDX-License-Identifier: MIT
"""The convolutional networks that speed is measured with. Their weights come from a seed: they do the work of the real
networks, but their results mean nothing.

    NETWORKS["resnet50"](size=224, batch=8)     -> builder.Network; write(folder) and onnx() are its two forms
"""
import functools

from networks import densenet, inception, mobilenet, resnet, squeezenet, ssd, vgg

NETWORKS = {
    **{f"resnet{depth}": functools.partial(resnet.resnet, depth) for depth in resnet.UNITS},
    **{f"vgg{depth}": functools.partial(vgg.vgg, depth) for depth in vgg.CONVOLUTIONS},
    **{f"densenet{depth}": functools.partial(densenet.densenet, depth) for depth in densenet.SIZES},
    "inception_v3": inception.inception,
    "mobilenet_v2": mobilenet.mobilenet,
    "squeezenet": squeezenet.squeezenet,
    "ssd_resnet50": ssd.ssd,
}
