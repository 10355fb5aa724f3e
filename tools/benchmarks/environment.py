# SPDX-License-Identifier: MIT
"""Prepares tools/bench: a venv with the peers, and a build of rnncc. Uses only Python's own library."""
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RNNCC_BUILD", ROOT / "build"))
VENV = ROOT / ".venv-bench"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PEERS = {"rnn": ("onnxruntime", "openvino", "torch"), "cnn": ("onnxruntime", "openvino", "ncnn"),
         "products": ("onnxruntime", "openvino"), "lowp": ("onnxruntime", "openvino"),
         "ablation": (), "compare": (), "predict": (), "static": (), "width": (),
         "exported": ("onnxruntime", "torch", "onnxscript"), "fft": ("onnxruntime", "scipy"), "deepcpu": ("onnxruntime", "openvino", "torch"),
         "blocks": ("onnxruntime", "torch"), "train": ("torch",), "steps": ("torch",), "weights": ()}
OWN = ("rnncc", "untuned", "f32", "bf16_weights", "int8_weights", "bf16_products")  # contestants that are no peers
UNTUNED = {"cnn": ("untuned",)}  # where schedules can be measured
PACKAGES = {"ncnn": ("ncnn", "pnnx")}  # of peers that take more than the one of their name
ALONE = ("pnnx",)  # without dependencies: it names PyTorch, which its converter, a program by itself, does not need
ENVIRONMENT_ERROR = 5
UNMEASURED = {"XDG_CACHE_HOME": "/dev/null"}
CPU_WHEELS = "download.pytorch.org"  # PyPI's torch is the CUDA build: gigabytes that are of no use here


class Missing(Exception):
    pass


def exit_code(run, *given, also=Missing):
    """What run(*given) returns; where the machine lacks something, which Missing or `also` says, that is told."""
    try:
        return run(*given)
    except (Missing, also) as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return ENVIRONMENT_ERROR


def packages(peers):
    return {package for peer in peers for package in PACKAGES.get(peer, (peer,))}


def wanted_packages(text, what, without):
    """The pins of requirements.txt, without peers that are left out or have no part in `what`."""
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    others = packages(peer for peers in PEERS.values() for peer in peers) - packages(set(PEERS[what]) - set(without))
    return [pin for pin in pins if pin.split("==")[0] not in others]


def missing_packages(what, without):
    installed = VENV / "requirements.txt"
    known = installed.read_text().splitlines() if installed.exists() else []
    return [pin for pin in wanted_packages(REQUIREMENTS.read_text(), what, without) if pin not in known]


def run_quietly(what, *command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Missing("\n".join([*(done.stdout + done.stderr).splitlines()[-20:], what]))


def reachable(host):
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False


def install(pins):
    print(f"tools/bench: installing into {VENV.name}, once: {' '.join(pins)}", file=sys.stderr)
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else shutil.which("python3")
    if not (VENV / "bin" / "pip").exists():
        run_quietly(f"cannot make {VENV.name}: Debian's package python3-venv is needed",
                    python, "-m", "venv", "--clear", VENV)
    index = ["--extra-index-url", f"https://{CPU_WHEELS}/whl/cpu"] if reachable(CPU_WHEELS) else []
    peers = sorted({peer for group in PEERS.values() for peer in group})
    names = " ".join(f"--without {peer}" for peer in peers if any(pin.startswith(peer + "==") for pin in pins))
    pip = [VENV / "bin" / "pip", "--disable-pip-version-check", "install"]
    alone = [pin for pin in pins if pin.split("==")[0] in ALONE]
    for command in ([*index, *(pin for pin in pins if pin not in alone)], ["--no-deps", *alone]):
        if any("==" in word for word in command):
            run_quietly(f"cannot install the packages; is there a network? A peer can be left out: {names}",
                        *pip, *command)
    with open(VENV / "requirements.txt", "a") as installed:
        installed.writelines(pin + "\n" for pin in pins)


def output_of(*command):
    """What the program prints, run as where nothing was measured or tuned: with no cache of the user's."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | UNMEASURED)
    if done.returncode:
        raise Missing(f"{done.stderr}{command[0]} ended with status {done.returncode}")
    return done.stdout


def prepare(what, without):
    pins = missing_packages(what, without)
    if pins:
        install(pins)
    build()


def build():
    if "RNNCC_BUILD" not in os.environ and subprocess.run([ROOT / "tools" / "build"]).returncode:
        raise Missing("rnncc cannot be built; tools/setup build installs what that needs")
