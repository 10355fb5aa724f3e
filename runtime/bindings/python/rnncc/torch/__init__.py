# SPDX-License-Identifier: MIT
"""PyTorch's recurrent layers, run and trained by compiled modules. Needs torch.

    import rnncc.torch
    layer = rnncc.torch.compile_rnn(torch.nn.LSTM(40, 64, num_layers=2))  # then as before: layer(x), backward(), step()
"""
from .layer import CompiledRNN, compile_rnn

__all__ = ["CompiledRNN", "compile_rnn"]
