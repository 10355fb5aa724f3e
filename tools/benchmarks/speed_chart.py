#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/benchmarks/speed_chart.py: draws tools/docs/speed.svg, README's picture, from the results that stand in this folder.

A row for each file of results, that is for each kind of networks and each instruction set; a dot for each case: how many
times as fast as the fastest peer rnncc is. Needs nothing but Python.
"""
import json
import math
import statistics
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "speed.svg"
OWN = ("rnncc", "untuned", "f32", "bf16_weights", "int8_weights", "bf16_products")  # contestants that are no peers, as environment.py has them
KINDS = {"results": "recurrent layers", "cnn_results": "convolutional networks",
         "product_results": "products, Transformers", "lowp_results": "int8, bf16"}
ISAS = {"amx": "AMX", "avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON"}
LEFT, TOP, WIDTH, ROW = 250, 48, 520, 34
LEAST, MOST = 0.35, 12
TICKS = (0.5, 1, 2, 4, 8)
STYLE = "text{font:13px sans-serif;fill:#333}.small{font-size:11px;fill:#666}.median{font-weight:bold}"


def speeds(results):
    """The fastest peer's median time over rnncc's, of each case that has a peer."""
    found = []
    for case in results["cases"]:
        seconds = {name: one["median_seconds"] for name, one in case["contestants"].items()}
        peers = [time for name, time in seconds.items() if name not in OWN]
        if peers:
            found.append(min(peers) / seconds["rnncc"])
    return found


def rows():
    """(title, speeds) of each file of results that is there."""
    for kind, title in KINDS.items():
        for isa, name in ISAS.items():
            path = HERE / f"{kind}.{isa}.json"
            if path.exists():
                yield f"{title}, {name}", speeds(json.loads(path.read_text()))


def place(speed):
    share = math.log(min(max(speed, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return round(LEFT + WIDTH * share, 1)


def scale(bottom):
    for tick in TICKS:
        x, colour = place(tick), "#333" if tick == 1 else "#ddd"
        yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="{colour}"/>'
        yield f'<text class="small" x="{x}" y="{bottom + 16}" text-anchor="middle">{tick}</text>'


def row(title, found, y):
    median = statistics.median(found)
    yield f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(title)}</text>'
    for speed in sorted(found):
        colour = "#2f6fab" if speed >= 1 else "#c8102e"
        yield f'<circle cx="{place(speed)}" cy="{y}" r="4" fill="{colour}" fill-opacity="0.45"/>'
    yield f'<line x1="{place(median)}" y1="{y - 11}" x2="{place(median)}" y2="{y + 11}" stroke="#333" stroke-width="2"/>'
    yield f'<text class="median" x="{LEFT + WIDTH + 12}" y="{y + 4}">{median:.2f}</text>'


def picture(given):
    height = TOP + ROW * len(given) + 44
    bottom = TOP + ROW * len(given)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 70} {height}" role="img">',
             "<title>How many times as fast as the fastest peer rnncc is</title>", f"<style>{STYLE}</style>",
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="20">How many times as fast as the fastest peer; a dot for each case</text>',
             f'<text class="small" x="{LEFT + WIDTH + 12}" y="{TOP - 8}">median</text>', *scale(bottom)]
    for number, (title, found) in enumerate(given):
        lines += row(title, found, TOP + ROW * number + ROW // 2)
    lines.append(f'<text class="small" x="{LEFT}" y="{height - 8}">Peers: ONNX Runtime, OpenVINO, PyTorch, ncnn, on two '
                 "cores of Zen 5. Red: slower than one of them.</text>")
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(list(rows())))
