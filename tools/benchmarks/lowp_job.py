# SPDX-License-Identifier: MIT
"""A case of `tools/bench lowp`: its model files for all contestants, its input, and how far outputs are from f32's.

The error is that of the output, as a part of it: the root of the squares of the differences from f32, over that of
f32's squares. In decibels that is the signal-to-noise ratio.
"""
import json
import math

import numpy as np
import onnx

from benchmarks import cnn_job, lowp_cases, lowp_limits, lowp_models, machine, networks, product_job
from benchmarks.contestants import MODULES, QUANTISED, Job

FACTS = "lowp.json"
JOBS = {"recurrent": Job, "image": cnn_job.CnnJob, "product": product_job.ProductJob}
F32 = ("f32", "onnxruntime")  # contestants that compute in f32
F32_BOUND = 1e-4
PEER_BOUND = 1  # without VNNI their sums of int8 products may saturate: how far off that is, the page shows
COARSE = 10 ** (-30 / 20)  # 30 dB: a bound for what is rounded to 8 bits anywhere
BEYOND = 1.5  # of ONNX Runtime's error with the same quantised model


def write_base(case, folder):
    """Writes model.onnx, and rnncc's model of it, whose path is returned."""
    if case.kind == "recurrent":
        model = networks.model(case.base)
        onnx.save(model.onnx(), folder / "model.onnx")
        return model.write(folder)
    return (cnn_job if case.kind == "image" else product_job).write_model(case.base, folder, ())


def write_model(case, folder, contestants):
    model = write_base(case, folder)
    job = JOBS[case.kind](case.base, folder)
    bound, files = COARSE, ["model.onnx"]
    if case.quantised:
        lowp_models.quantise(case, folder, job.feeds)
        bound = max(COARSE, BEYOND * error(case, quantised_outputs(folder, job), job.reference()))
        files.append(QUANTISED)
    facts = {"bound": bound, "work": lowp_limits.work(case, folder),
             "file_bytes": {name: (folder / name).stat().st_size for name in files}}
    (folder / FACTS).write_text(json.dumps(facts))
    return model


def quantised_outputs(folder, job):
    """ONNX Runtime's, with exact sums of products on a CPU without VNNI, too."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder / QUANTISED, options, providers=["CPUExecutionProvider"])
    return dict(zip(job.outputs, session.run(list(job.outputs), job.feeds)))


def takes_part(name, isa):
    return name != lowp_cases.PRODUCTS or isa == "amx"


def contestants(without, isa):
    """Without those of peers that are left out, and without bf16 where the CPU has no products of it."""
    left = [name for name in lowp_cases.CONTESTANTS if name.split("_")[0] not in without and takes_part(name, isa)]
    return [name for name in left if not name.endswith("_bf16") or isa in ("avx512", "amx") and machine.has_flag("avx512_bf16")]


def modules(case, folder, model, options, isa):
    """File name -> (model, options) of the modules that take part."""
    ours = (folder / QUANTISED, []) if case.quantised else (model, ["--precision=int8-dynamic"])
    sources = {"rnncc": ours, "f32": (model, []),
               **{name: (model, [f"--precision={name.split('_')[0]}"]) for name in lowp_cases.WEIGHTS},
               lowp_cases.PRODUCTS: (model, ["--precision=bf16-dynamic"])}
    return {MODULES[name]: (source, [*options, *more]) for name, (source, more) in sources.items()
            if name in case.contestants and takes_part(name, isa)}


def facts(case, folder, isa):
    """What the page shows besides times."""
    files = [name for name in case.contestants if name in MODULES and takes_part(name, isa)]
    return {**json.loads((folder / FACTS).read_text()),
            "module_bytes": {name: (folder / MODULES[name]).stat().st_size for name in files}}


# Errors


def compared(values):
    """Of detections [N,BEST,6], whose rows change places, the scores: they are in descending order."""
    return values[..., 1] if values.ndim == 3 and values.shape[-1] == 6 else values


def error(case, outputs, expected):
    noise = signal = 0.0
    for name, values in expected.items():
        got, wanted = ((compared(array) if case.kind == "image" else array).astype(np.float64)
                       for array in (outputs[name], values))
        noise, signal = noise + float(((got - wanted) ** 2).sum()), signal + float((wanted ** 2).sum())
    return math.sqrt(noise / signal) if math.isfinite(noise) else math.inf


class LowpJob:
    """Like contestants.Job."""

    def __init__(self, case, folder):
        base = JOBS[case.kind](case.base, folder)
        self.case, self.folder, self.near, self.base = case, folder, base.near, base
        self.feeds, self.outputs, self.weight_bytes = base.feeds, base.outputs, base.weight_bytes
        self.bound = json.loads((folder / FACTS).read_text())["bound"]

    def reference(self):
        return self.base.reference()

    def error(self, outputs, expected):
        return error(self.case, outputs, expected)

    def bound_of(self, contestant):
        return F32_BOUND if contestant in F32 else self.bound if contestant in MODULES else PEER_BOUND
