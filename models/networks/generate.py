# SPDX-License-Identifier: MIT
"""models/generate: writes networks in both forms, NAME.json with NAME.safetensors and NAME.onnx."""
import argparse
import inspect
import sys
from pathlib import Path

import onnx

from networks import NETWORKS, READERS


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def parser():
    top = argparse.ArgumentParser(
        prog="models/generate", epilog="For example: models/generate resnet50 -o build && build/compiler/rnncc "
                                       "build/resnet50.json -o build/resnet50.so",
        description="Writes networks with seeded weights: FOLDER/NAME.json and NAME.safetensors for rnncc, and NAME.onnx, "
                    "which has the same weights.")
    top.add_argument("names", nargs="*", choices=[[], *NETWORKS, *READERS], metavar="NAME",
                     help=f"convolutional: {' '.join(NETWORKS)}; these read text: {' '.join(READERS)}")
    top.add_argument("--list", action="store_true", help="prints the names and ends")
    top.add_argument("-o", dest="folder", type=Path, metavar="FOLDER", help="where to; made if it is not there")
    top.add_argument("--batch", type=positive(int), metavar="N",
                     help="at most so many images, documents or texts a run, their number known only then; default: one "
                          "image, always, and as many documents and texts as in the paper")
    top.add_argument("--size", type=positive(int), metavar="PIXELS", help="height and width of an image; default: as in the paper")
    top.add_argument("--width", type=positive(float), metavar="FACTOR", help="of all channel counts of an image; default: 1")
    return top


def made(top, name, given):
    """The network. Options that it has not are an error, not ignored."""
    options = {option: value for option in ("batch", "size", "width") if (value := getattr(given, option)) is not None}
    make = {**NETWORKS, **READERS}[name]
    known = {"batch", "size", "width"} if name in NETWORKS else set(inspect.signature(make).parameters)
    if wrong := sorted(set(options) - known):
        top.error(f"{name} has no --{wrong[0]}")
    return make(**options)


def main():
    top = parser()
    given = top.parse_args()
    if given.list:
        print("\n".join([*NETWORKS, *READERS]))
        return 0
    if not given.names or not given.folder:
        top.error("at least one NAME and -o FOLDER are needed")
    for name in given.names:
        net = made(top, name, given)
        given.folder.mkdir(parents=True, exist_ok=True)
        path = net.write(given.folder)
        onnx.save(net.onnx(), path.with_suffix(".onnx"))
        print(f"{path} (.safetensors, .onnx)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
