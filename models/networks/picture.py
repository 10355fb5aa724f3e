# SPDX-License-Identifier: MIT
"""python -m networks.picture MODEL.onnx: writes a picture in the network's format, [1,3,H,W] normalised like ImageNet's
photographs, to image.npy beside the model, and ONNX Runtime's output for it to probabilities.npy."""
import sys
from pathlib import Path

import numpy
import onnxruntime

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's red, green and blue


def landscape(H, W):
    """[H,W,3] from 0 to 1: a sun over hills, and the grain of a camera."""
    y, x = numpy.mgrid[0:H, 0:W] / (H - 1)
    light = (1 - y)[..., numpy.newaxis]
    picture = light * (0.3, 0.55, 0.9) + (1 - light) * (0.9, 0.7, 0.5)
    picture[(x - 0.7) ** 2 + (y - 0.25) ** 2 < 0.01] = (1, 0.95, 0.6)
    for distance, colour in ((0.5, (0.35, 0.5, 0.35)), (0.65, (0.25, 0.42, 0.2)), (0.8, (0.15, 0.3, 0.1))):
        picture[y > distance + 0.06 * numpy.sin(9 * x + 20 * distance)] = colour
    return numpy.clip(picture + numpy.random.default_rng(1).normal(0, 0.03, picture.shape), 0, 1)


def main(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    _, _, H, W = session.get_inputs()[0].shape
    image = ((landscape(H, W) - MEAN) / DEVIATION).transpose(2, 0, 1)[numpy.newaxis].astype(numpy.float32)
    numpy.save(path.with_name("image.npy"), image)
    numpy.save(path.with_name("probabilities.npy"), session.run(["probabilities"], {"image": image})[0])


main(Path(sys.argv[1]))
