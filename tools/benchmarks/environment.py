# SPDX-License-Identifier: MIT
"""What tools/bench needs before it can measure: a venv with the peers, and rnncc built. Only Python's own library."""
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
PEERS = ("onnxruntime", "openvino", "torch")
ENVIRONMENT_ERROR = 5
CPU_WHEELS = "download.pytorch.org"  # PyPI's torch is the CUDA build: gigabytes that are of no use here


class Missing(Exception):
    pass


def wanted_packages(text, without):
    """The pins of requirements.txt, but for the peers that are left out."""
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [pin for pin in pins if pin.split("==")[0] not in without]


def missing_packages(without):
    installed = VENV / "requirements.txt"
    known = installed.read_text().splitlines() if installed.exists() else []
    return [pin for pin in wanted_packages(REQUIREMENTS.read_text(), without) if pin not in known]


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
    names = " ".join(f"--without {peer}" for peer in PEERS if any(pin.startswith(peer + "==") for pin in pins))
    run_quietly(f"cannot install the packages; is there a network? A peer can be left out: {names}",
                VENV / "bin" / "pip", "--disable-pip-version-check", "install", *index, *pins)
    with open(VENV / "requirements.txt", "a") as installed:
        installed.writelines(pin + "\n" for pin in pins)


def prepare(without):
    pins = missing_packages(without)
    if pins:
        install(pins)
    if "RNNCC_BUILD" not in os.environ and subprocess.run([ROOT / "tools" / "build"]).returncode:
        raise Missing("rnncc cannot be built; tools/setup installs what that needs")
