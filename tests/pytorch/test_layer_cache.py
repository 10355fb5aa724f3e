# SPDX-License-Identifier: MIT
"""The folder that rnncc.torch keeps compiled layers in: what a module's name is made of, how long it lasts, whose it is."""
import os
import shutil

import pytest
import torch
from torch import nn

from support import pages
from support.module import rnncc as package
import rnncc.torch
from rnncc.torch import cache, runs

I, H = 5, 7
pytestmark = pytest.mark.usefixtures("by_this_rnncc")


def compiled(layer, **options):
    return rnncc.torch.compile_rnn(layer, threads=2, **options)


def padded():
    return torch.randn(6, 4, I)


def test_a_module_is_compiled_once_and_again_where_it_was_damaged(tmp_path, monkeypatch):
    made = []
    real = cache._compile
    monkeypatch.setattr(cache, "_compile", lambda *arguments: made.append(arguments) or real(*arguments))
    tmp_path.chmod(0o700)
    x = padded()
    for _ in range(2):
        compiled(nn.LSTM(I, H), cache=tmp_path)(x)
    assert len(made) == 1
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    compiled(nn.LSTM(I, H), cache=tmp_path)(x)
    assert len(made) == 2
    monkeypatch.setattr(cache, "KEPT", 1)
    os.utime(file, (0, 0))
    with torch.no_grad():
        compiled(nn.LSTM(I, H), cache=tmp_path)(x)
    assert len(list(tmp_path.iterdir())) == 1 and not file.exists()


def test_a_modules_name_is_of_all_that_makes_it(rnncc, tmp_path, monkeypatch):
    """Of the model, and of the kernels, which rnncc reads from files."""
    data, folder = tmp_path / "data", tmp_path / "layers"
    folder.mkdir(mode=0o700)
    for part in cache.DATA:
        shutil.copytree(pages.ROOT / part, data / part, ignore=shutil.ignore_patterns("bindings"))
    monkeypatch.setattr(cache, "_compile", lambda _stack, _options, target: None)
    stack = cache.Stack("GRU", I, H, 0, 1, 1, True, False, False)

    def name():
        return cache.module_of(stack, ["--threads=1"], folder)

    built_from = name()
    monkeypatch.setenv("RNNCC_DATA", str(data))
    assert name() == name() == built_from
    names = {built_from}
    for file in ("templates/attention.c", "runtime/run.c"):
        with open(data / file, "a") as text:
            text.write("\n")
        names.add(name())
    real = cache.document
    monkeypatch.setattr(cache, "document", lambda *given: real(*given).replace("linear_before_reset", "other"))
    names.add(name())
    assert len(names) == 4


def test_a_folder_stays_where_the_program_goes_to_another(tmp_path, monkeypatch):
    used = []
    monkeypatch.setattr(runs, "module_of", lambda stack, options, folder: used.append(folder) or cache.module_of(stack, options, None))
    monkeypatch.chdir(tmp_path)
    fast = compiled(nn.LSTM(I, H), cache="layers")
    monkeypatch.chdir("/")
    fast(padded())
    assert used == [str(tmp_path / "layers")]


def test_what_a_killed_process_left_is_removed(tmp_path):
    tmp_path.chmod(0o700)
    left, at_work = tmp_path / "new-left", tmp_path / "new-at-work"
    for room in (left, at_work):
        room.mkdir()
        (room / "layer.json").write_text("{}")
    os.utime(left, (0, 0))
    with torch.no_grad():
        compiled(nn.LSTM(I, H), cache=tmp_path)(padded())
    assert at_work.exists() and not left.exists()


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(package.ArgumentError, match="no other may write to"):
        compiled(nn.LSTM(I, H), cache=tmp_path)(padded())
    with pytest.raises(package.ArgumentError, match="cannot keep compiled layers there"):
        compiled(nn.LSTM(I, H), cache="/dev/null/layers")(padded())
