# SPDX-License-Identifier: MIT
"""A PyTorch program as a contestant, called from Python, as its users call it."""
import time


class TorchRunner:
    name = "PyTorch"

    def __init__(self, module, job, threads):
        """module: a function of the job's inputs, in their order; its results are the job's outputs."""
        import torch
        self.torch, self.threads, self.module = torch, threads, module
        self.inputs, self.output_names = [torch.from_numpy(array) for array in job.feeds.values()], list(job.outputs)

    def times(self, runs):
        self.torch.set_num_threads(self.threads)
        seconds = []
        with self.torch.inference_mode():
            for _ in range(runs):
                began = time.perf_counter()
                self.module(*self.inputs)
                seconds.append(time.perf_counter() - began)
        return seconds

    def run(self):
        with self.torch.inference_mode():
            results = self.module(*self.inputs)
        results = results if isinstance(results, tuple) else (results,)
        return {name: part.numpy() for name, part in zip(self.output_names, results, strict=True)}

    def close(self):
        pass
