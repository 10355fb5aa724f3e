# SPDX-License-Identifier: MIT
"""SSD: W. Liu et al., SSD: Single Shot MultiBox Detector, ECCV 2016, on ResNet-50 and images of 512x512 pixels, with
the maps, layers and prior boxes of GluonCV's ssd_512_resnet50_v1 and the 20 classes of Pascal VOC.

    maps        the last of ResNet-50's stages 3 and 4, then four more, each half as wide as the one before it
    predict     of a map's pixels, for each prior box that stands there: a score of each class, and a box
    corners     the predicted boxes, from their offsets to the prior ones
    detect      scores to probabilities; in each class what overlaps a better box is out; the best of what is left

A is the number of prior boxes of all maps: map by map, row by row, pixel by pixel, and at a pixel in the order of
`shapes`. Lengths are in units of the image's side. The output, `detections` [N,BEST,6], has an image's best detections
by falling score: class, score and the corners x1, y1, x2, y2. Rows beyond the last detection are -1.
"""
import math

import numpy

from networks.builder import Network
from networks.resnet import UNITS, bottleneck, unit

CLASSES = 20  # beside the background, which comes before them where scores are predicted
EXTRA = [512, 512, 256, 256]  # channels of the maps after ResNet's

# For each map: the prior boxes' aspect ratios besides 1, their scale, and the next map's, as parts of 512 pixels.
FEW, MANY = (2, 1 / 2), (2, 1 / 2, 3, 1 / 3)
RATIOS = [FEW, MANY, MANY, MANY, FEW, FEW]
SCALES = numpy.array([51.2, 102.4, 189.4, 276.4, 363.52, 450.6, 492.0]) / 512

CENTRE, SIDES = 0.1, 0.2  # factors of the predicted offsets
LEAST, OVERLAP = 0.01, 0.45  # candidates have a higher score; intersection over union
OF_CLASS, BEST = 100, 100  # at most so many boxes of a class, and in all

# Standard deviations of what is predicted, and the background's lead: as in a trained network some 2% of the scores are
# candidates.
LOGITS, OFFSETS, BACKGROUND = 2.0, 1.0, 10.5


# Prior boxes (section 2.2)


def shapes(level):
    """[P,2]: width and height of each box that stands at a pixel of the map. Of scale s, the next map's being t, and
    aspect ratio a: s*sqrt(a) and s/sqrt(a); and one more square, of sqrt(s*t)."""
    s, t = SCALES[level:level + 2]
    roots = numpy.sqrt(RATIOS[level])
    return numpy.array([(s, s), (math.sqrt(s * t),) * 2, *zip(s * roots, s / roots)])


def prior_boxes(extents):
    """([1,A,2], [1,A,2]): centres x, y, then widths and heights, on maps of these extents: the pixel at i, j of a map
    of F x F has its centre at (j + 0.5) / F, (i + 0.5) / F."""
    centres, sides = [], []
    for level, F in enumerate(extents):
        y, x = numpy.indices([F, F])
        pixels = (numpy.stack([x, y], axis=2).reshape(-1, 2) + 0.5) / F
        centres.append(numpy.repeat(pixels, len(shapes(level)), axis=0))
        sides.append(numpy.tile(shapes(level), (F * F, 1)))
    return tuple(numpy.concatenate(parts)[None] for parts in (centres, sides))


# Maps and what is predicted from them


def conv(net, x, channels, kernel, stride=1, pad=0):
    return net.relu(net.batch_norm(net.conv(x, channels, kernel, stride, pad)))


def base(net):
    """The maps of 1/16 and 1/32 of the image's extent."""
    with net.scope("stem"):
        x = net.max_pool(conv(net, net.image, net.scaled(64), 7, 2, 3), 3, 2, pad=1)
    ends = []
    for stage, units in enumerate(UNITS[50]):
        for number in range(units):
            with net.scope(f"stage{stage + 1}.unit{number + 1}"):
                x = unit(net, x, 4 * net.scaled(64 << stage), 2 if stage and not number else 1, bottleneck)
        ends.append(x)
    return ends[2:]


def maps(net):
    found = base(net)
    for number, channels in enumerate(EXTRA, 1):
        with net.scope(f"extra{number}"):
            x = conv(net, found[-1], net.scaled(channels), 1)
            found.append(conv(net, x, net.scaled(channels), 3, 2, 1))
    return found


def head(net, x, P, deviation, bias):
    """[N,H*W*P*K]: K numbers for each of the P boxes at a pixel, side by side; `bias` [K] is added to them."""
    C, channels, square = net.channels[x], P * len(bias), deviation ** 2
    kernels = net.normal(deviation * (9 * C * net.mean_square[x]) ** -0.5, channels, C, 3, 3)
    kernels -= kernels.mean(axis=(1, 2, 3), keepdims=True)
    weights = {"weight": kernels, "bias": numpy.tile(numpy.float32(bias), P)}
    x = net.layer("conv", "Conv", [x], channels, square, weights, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4,
                  group=1)
    x = net.layer("permute", "Transpose", [x], channels, square, perm=[0, 2, 3, 1])
    return net.layer("flat", "Flatten", [x], channels, square, axis=1)


def predict(net, found, kind, deviation, bias):
    """[N,A,K]: K numbers for each prior box."""
    parts = []
    for level, x in enumerate(found):
        with net.scope(f"{kind}{level + 1}"):
            parts.append(head(net, x, len(shapes(level)), deviation, bias))
    node = nodes(net, kind)
    return node("Reshape", node("Concat", *parts, axis=1), [0, -1, len(bias)])


# From what is predicted to detections


def nodes(net, part):
    """node("Mul", x, 0.1): its result's name, of the network's part. An operand that is no name is a constant."""

    def node(op, *operands, outputs=1, **attributes):
        with net.scope(part):
            constants = [given if isinstance(given, str) else net.constant(typed(given), net.fresh("constant"))
                         for given in operands]
            return net.node(op, constants, [net.fresh(op.lower()) for _ in range(outputs)], **attributes)

    return node


def typed(given):
    array = numpy.asarray(given)
    return array.astype(numpy.float32 if array.dtype.kind == "f" else numpy.int64)


def corners(net, offsets, extents):
    """[N,A,4], corners, of offsets [N,A,4]: d_x, d_y to the prior box's centre in units of its sides w, h, and d_w, d_h,
    the logarithms of how many times its sides are the prior's: g_x = x + d_x w, g_w = w exp(d_w) (equation 2)."""
    node, (centres, sides) = nodes(net, "corners"), prior_boxes(extents)
    moved, stretched = node("Split", offsets, outputs=2, num_outputs=2, axis=2)
    centre = node("Add", node("Mul", moved, CENTRE * sides), centres)
    half = node("Mul", node("Exp", node("Mul", stretched, SIDES)), sides / 2)
    return node("Concat", node("Sub", centre, half), node("Add", centre, half), axis=2)


def suppress(net, scores, boxes):
    """[N,CLASSES*A]: scores [N,CLASSES,A] of the boxes that are taken, 0 for all others."""
    node = nodes(net, "suppress")
    taken = node("NonMaxSuppression", boxes, scores, [OF_CLASS], [OVERLAP], [LEAST])
    none = node("Mul", scores, 0.0)
    return node("Flatten", node("ScatterND", none, taken, node("GatherND", scores, taken)), axis=1)


def detect(net, logits, boxes, A):
    """[N,BEST,6] of logits [N,A,1+CLASSES] and boxes [N,A,4]."""
    node = nodes(net, "detect")
    probabilities = node("Softmax", logits, axis=2)
    scores = node("Transpose", node("Slice", probabilities, [1], [1 + CLASSES], [2]), perm=[0, 2, 1])
    best, places = node("TopK", suppress(net, scores, boxes), [BEST], outputs=2, axis=1)
    places, best = node("Unsqueeze", places, [2]), node("Unsqueeze", best, [2])
    found = node("GatherND", boxes, node("Mod", places, A), batch_dims=1)
    classes = node("Cast", node("Div", places, A), to="f32")
    return node("Where", node("Greater", best, 0.0), node("Concat", classes, best, found, axis=2), -1.0)


def ssd(**options):
    net = Network("ssd_resnet50", **{"size": 512, **options})
    found = maps(net)
    extents = extents_of(net)
    logits = predict(net, found, "classes", LOGITS, [BACKGROUND] + [0] * CLASSES)
    offsets = predict(net, found, "boxes", OFFSETS, [0] * 4)
    detections = detect(net, logits, corners(net, offsets, extents), prior_boxes(extents)[0].shape[1])
    net.output(net.node("Identity", [detections], ["detections"]))
    return net


def extents_of(net):
    """The extents of the maps: a convolution or pooling of stride 2 halves an extent, and rounds up."""
    size = net.inputs[0]["shape"][2]
    return [-(-size // (16 << level)) for level in range(len(RATIOS))]
