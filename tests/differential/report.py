# SPDX-License-Identifier: MIT
"""What a finding is told by: the small model that it shrank to, and the command that repeats it."""
import json

import numpy

from differential.shrink import shrunk

FUZZ = "tools/fuzz --differential"


def command(seed, number, size):
    """Of the group in which the case was."""
    return f"{FUZZ} --seed={seed} --group={number} --graphs={size}"


def short(array):
    numbers = numpy.asarray(array).ravel()
    told = ", ".join(str(number) for number in numbers[:24]) + (", ..." if numbers.size > 24 else "")
    return f"{numpy.asarray(array).dtype}{list(numpy.asarray(array).shape)} {told}"


def told(finding, checker, repeat, shrink=True):
    """Some lines."""
    best = shrunk(finding, checker) if shrink else finding
    case = best.case
    path = case.model.write(checker.folder)
    lines = [finding.what, f"  repeat: {repeat}", f"  options: {' '.join(finding.options)}"]
    if best.what != finding.what:
        lines.append(f"  shrunk: {best.what}")
    model = json.loads(path.read_text())
    lines += [f"  dims: {json.dumps(case.model.dims)}"] if case.model.dims else []
    lines += [f"  input {i['name']} {i['dtype']}{i['shape']}: {short(case.feeds[0][i['name']])}" for i in model["inputs"]]
    lines += [f"  constant {name}: {short(array)}" for name, array in case.model.arrays.items()]
    lines += [f"  state {json.dumps(state)}" for state in case.model.states]
    for node in model["nodes"]:
        lines.append(f"  {', '.join(node['outputs'])} = {node['op']}({', '.join(node['inputs'])}) {json.dumps(node.get('attributes', {}))}")
    lines.append(f"  outputs {', '.join(model['outputs'])}; within {case.errors}")
    return "\n".join(lines + ([best.detail.strip()] if best.detail else []))
