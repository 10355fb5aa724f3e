# SPDX-License-Identifier: MIT
"""Which tests run which lines, from the folders of profiles of a coverage run."""
import collections
import hashlib
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import profiles

MOST_TESTS = 60  # of a line are kept, the fastest


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class CoverageMap:
    """seconds: test -> what it took. tests: file -> line -> tests, the fastest first. mapped: file -> lines with code.
    sources: file -> sha256."""

    def __init__(self, seconds, tests, mapped, sources):
        self.seconds, self.tests, self.mapped, self.sources = seconds, tests, mapped, sources

    def of_line(self, file, line):
        return self.tests.get(file, {}).get(str(line), [])

    def of_file(self, file):
        found = {test for tests in self.tests.get(file, {}).values() for test in tests}
        return sorted(found, key=self.seconds.get)

    def save(self, path):
        path.write_text(json.dumps(vars(self)))

    @classmethod
    def load(cls, path):
        return cls(**json.loads(path.read_text()))


def test_folders(folder):
    """(name, seconds, raw profiles) of each test, the fastest first."""
    found = []
    for said in folder.glob("*/test"):
        seconds = sum(map(float, (said.parent / "seconds").read_text().split()))
        found.append((said.read_text(), seconds, sorted(said.parent.glob("*.profraw"))))
    return sorted(found, key=lambda test: test[1])


def make(root, build, folder, merged, jobs):
    """The map of the tests in the folder; merged: the profile of all."""
    found = test_folders(folder)

    def lines(test):
        if not test[2]:
            return {}
        with tempfile.TemporaryDirectory() as place:
            profile = Path(place) / "test.profdata"
            profiles.merge(test[2], profile)
            return profiles.lines_run(build, profile, root)

    by_line = collections.defaultdict(lambda: collections.defaultdict(list))
    with ThreadPoolExecutor(jobs) as pool:
        for (name, _, _), ran in zip(found, pool.map(lines, found)):
            for file, numbers in ran.items():
                for number in numbers:
                    if len(by_line[file][number]) < MOST_TESTS:
                        by_line[file][number].append(name)
    mapped = profiles.lines_run(build, merged, root, also_not_run=True)
    sources = {file: digest(root / file) for file in mapped}
    return CoverageMap({name: seconds for name, seconds, _ in found}, by_line, mapped, sources)
