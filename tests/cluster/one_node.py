#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Slurm cluster of one node, this machine, for as long as a command runs:

    tests/cluster/one_node.py sbatch --wait --array=1-2 tools/tune_cluster.sbatch model.json records.jsonl

munged, slurmctld and slurmd of Debian's slurm-wlm, run by the calling user, with configuration, keys, sockets, state and
logs in a temporary folder, on ports that are free, without systemd or control groups. The command finds them by
SLURM_CONF. Exit: the command's own; 77 if Slurm is not installed; 70 if it does not start.
"""
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NOT_INSTALLED, NOT_STARTED = 77, 70
PR_SET_CHILD_SUBREAPER = 36
SECONDS_TO_START, SECONDS_TO_END = 30, 10
PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "sbatch")

# The node's name is not the machine's, because a resolver may not know that.
CONFIGURATION = """\
ClusterName=one_node
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1
NodeName=here NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def configure(folder):
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").touch(mode=0o600)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "slurm.conf").write_text(CONFIGURATION.format(
        host=socket.gethostname().split(".")[0], user=pwd.getpwuid(os.getuid()).pw_name, folder=folder,
        ports=free_ports(2), cpus=os.cpu_count()))
    return {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}


def start(folder, environment):
    munged = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
              f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"]
    daemons = []
    for command in (munged, ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", "here"]):
        log = open(folder / f"{command[0]}.output", "wb")
        daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        start_new_session=True))
        if command is munged:
            wait_for(lambda: (folder / "munge.socket").exists(), daemons)
    wait_for(lambda: node_state(environment) == "idle", daemons)
    return daemons


def node_state(environment):
    done = subprocess.run(["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True)
    return done.stdout.strip()


def wait_for(ready, daemons):
    end = time.monotonic() + SECONDS_TO_START
    while not ready():
        if time.monotonic() > end or any(daemon.poll() is not None for daemon in daemons):
            raise TimeoutError
        time.sleep(0.05)


def children():
    """Processes whose parent is this one, including those that Slurm has left behind."""
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == own:
                yield int(entry.name)
        except OSError:
            pass  # it has ended


def end_all():
    """Terminates, then kills. A process that loses its parent becomes a child of this one, and its turn is the next round."""
    end = time.monotonic() + SECONDS_TO_END
    sent = signal.SIGTERM
    while left := list(children()):
        for pid in left:
            os.kill(pid, sent)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > end:
            sent = signal.SIGKILL
        time.sleep(0.05)


def main(command):
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        print(f"one_node: not installed: {', '.join(missing)}", file=sys.stderr)
        return NOT_INSTALLED
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        environment = configure(folder)
        try:
            start(folder, environment)
        except TimeoutError:
            for output in sorted(folder.glob("*.output")):
                print(f"one_node: {output.stem}: {output.read_text()[-2000:]}", file=sys.stderr)
            return NOT_STARTED
        return subprocess.run(command, env=environment).returncode
    finally:
        end_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
