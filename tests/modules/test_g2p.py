# SPDX-License-Identifier: MIT
"""tools/g2p, the application, with the network of the package g2p_en: it gives the same pronunciations as the package."""
import math
import subprocess
import sys
import types

import numpy
import pytest

from conftest import ROOT

WORDS = 500
BEAM = 4

sys.path.insert(0, str(ROOT / "models"))


@pytest.fixture(scope="module")
def package():
    """The package's own network, in NumPy. For single words it does not use what it imports from other packages."""
    standing_in = {"nltk": {"pos_tag": None, "data": types.SimpleNamespace(find=lambda *_: None)}, "nltk.corpus": {
        "cmudict": types.SimpleNamespace(dict=dict)}, "nltk.tokenize": {
            "TweetTokenizer": lambda: types.SimpleNamespace(tokenize=str.split)}, "inflect": {"engine": lambda: None}}
    with pytest.MonkeyPatch.context() as patch:
        for name, content in standing_in.items():
            module = types.ModuleType(name)
            vars(module).update(content)
            patch.setitem(sys.modules, name, module)
        from g2p_en import G2p  # the stand-ins must be there first
        return G2p()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    from pretrained import g2p
    folder = tmp_path_factory.mktemp("g2p")
    g2p.main(folder)
    return [folder / f"g2p_{part}.json" for part in ("encoder", "decoder")]


@pytest.fixture(scope="module")
def say_in(rnnrun, compile, models):
    """say_in(options of rnncc) -> say(beam, words)."""
    def compiled(*given):
        modules = [compile(model, *given) for model in models]

        def run(beam, words, *more, **options):
            return subprocess.run([rnnrun.path.parent / "g2p", *modules, str(beam), *more], input="\n".join(words),
                                  capture_output=True, text=True, timeout=60, **options)

        return run

    return compiled


@pytest.fixture(scope="module")
def say(say_in):
    return say_in()


@pytest.fixture(scope="module")
def words(root):
    lines = (root / "models" / "held_out" / "hyphenate.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")][:WORDS]


def beam_search(package, word, width):
    """The search of tools/g2p.c, on the package's own cells: (phonemes, log probability)."""
    weights = package.dec_w_ih, package.dec_w_hh, package.dec_b_ih, package.dec_b_hh
    encoded = package.gru(package.encode(word), len(word) + 1, package.enc_w_ih, package.enc_w_hh, package.enc_b_ih,
                          package.enc_b_hh)
    growing, ended = [(0.0, [], encoded[:, -1])], (-math.inf, [])
    for _ in range(20):
        steps = []
        for score, phonemes, hidden in growing:
            hidden = package.grucell(package.dec_emb[[phonemes[-1] if phonemes else 2]], hidden, *weights)
            logits = (hidden @ package.fc_w.T + package.fc_b)[0].astype(numpy.float64)
            probabilities = logits - logits.max() - numpy.log(numpy.exp(logits - logits.max()).sum())
            steps += [(score + p, [*phonemes, k], hidden) for k, p in enumerate(probabilities)]
        best = sorted(steps, key=lambda step: -step[0])[:width]
        growing = [step for step in best if step[1][-1] != 3]
        ended = max([ended, *((score, phonemes[:-1]) for score, phonemes, _ in best if phonemes[-1] == 3)])
        if not growing or growing[0][0] < ended[0]:
            break
    found = growing[0] if growing and growing[0][0] > ended[0] else ended
    return [package.idx2p[phoneme] for phoneme in found[1]]


@pytest.mark.parametrize("precision, part", [("f16", 0.999), ("bf16", 0.995), ("int8:32", 0.98)])
def test_weights_of_fewer_bits_say_the_same_of_most_words(say, say_in, words, precision, part):
    """Words whose phonemes are all the same. A phoneme that is nearly another becomes that one."""
    wide, narrow = (one(1, words).stdout.splitlines() for one in (say, say_in(f"--precision={precision}")))
    assert len(wide) == len(narrow) == WORDS
    assert sum(a == b for a, b in zip(wide, narrow)) >= part * WORDS


def test_greedy_decoding_says_what_the_package_says(say, package, words):
    done = say(1, words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [" ".join([word, *package.predict(word)]) for word in words]


def test_a_beam_search_finds_what_one_in_numpy_finds(say, package, words):
    done = say(BEAM, words)
    assert done.returncode == 0, done.stderr
    expected = [" ".join([word, *beam_search(package, word, BEAM)]) for word in words]
    assert done.stdout.splitlines() == expected
    assert expected != say(1, words).stdout.splitlines()  # else the test would not show that the beam matters


def test_a_word_without_end_is_refused(say):
    done = say(1, ["a" * 63])
    assert done.returncode == 0
    done = say(1, ["a" * 64])
    assert done.returncode == 2 and "at most 63 letters" in done.stderr


@pytest.mark.parametrize("beam", ["0", "17", "x"])
def test_a_beam_is_1_to_16_hypotheses(say, beam):
    done = say(beam, ["word"])
    assert done.returncode == 2 and "1 to 16" in done.stderr
