# SPDX-License-Identifier: MIT
"""The networks that speed is measured with: convolutional ones, and those of DeepCPU, which read text. Their weights come from a seed: they do the work of the real
networks, but their results mean nothing.

    NETWORKS["resnet50"](size=224, batch=8)     -> builder.Network; write(folder) and onnx() are its two forms
    READERS["text_similarity"](batch=33)        -> reader.Reader, with the same forms
"""
import functools

from networks import (attention_sum_reader, bidaf, densenet, inception, mobilenet, resnet, squeezenet, ssd, text_similarity,
                      vgg)

NETWORKS = {
    **{f"resnet{depth}": functools.partial(resnet.resnet, depth) for depth in resnet.UNITS},
    **{f"vgg{depth}": functools.partial(vgg.vgg, depth) for depth in vgg.CONVOLUTIONS},
    **{f"densenet{depth}": functools.partial(densenet.densenet, depth) for depth in densenet.SIZES},
    "inception_v3": inception.inception,
    "mobilenet_v2": mobilenet.mobilenet,
    "squeezenet": squeezenet.squeezenet,
    "ssd_resnet50": ssd.ssd,
}
READERS = {
    "text_similarity": text_similarity.text_similarity,
    "attention_sum_reader": attention_sum_reader.attention_sum_reader,
    "bidaf": bidaf.bidaf,
}
