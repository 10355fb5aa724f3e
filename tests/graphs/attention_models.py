# SPDX-License-Identifier: MIT
"""Small models of attention and what stands around it: ATTENTION[name](rng) -> (Model, feeds). Their truth is ONNX's own
implementation in Python, at opset NEWEST."""
import functools

import numpy

from graphs.op_models import uniform
from support.model_builder import Model

NEWEST = 28
ATTENTION = {}


def one_node(op, arrays, outputs, dims=None, **attributes):
    """dims: (input, axis) -> (name, least, most) of axes that are known at run time only. An array of None is absent."""
    model, names, feeds = Model(), [], {}
    for k, array in enumerate(arrays):
        if array is None:
            names.append("")
            continue
        shape = [dims[k, axis][0] if dims and (k, axis) in dims else extent for axis, extent in enumerate(array.shape)]
        names.append(model.input(f"x{k}", model_type(array), shape))
        feeds[f"x{k}"] = array
    for name, least, most in (dims or {}).values():
        model.dim(name, least, least, most)
    results = [f"y{k}" if wanted else "" for k, wanted in enumerate(outputs)]
    model.node(op, names, results, **attributes)
    model.output(*[name for name in results if name])
    return model, feeds


def model_type(array):
    return {"float32": "f32", "int64": "i64", "bool": "bool"}[array.dtype.name]


# ---- Attention ----

def operands(rng, packed, B, S, T, q_heads, kv_heads, head, v_head, past):
    q, k, v = uniform(rng, B, q_heads, S, head), uniform(rng, B, kv_heads, T, head), uniform(rng, B, kv_heads, T, v_head)
    if packed:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(B, x.shape[2], -1) for x in (q, k, v))
    if past is None:
        return [q, k, v], [None, None]
    return [q, k, v], [uniform(rng, B, kv_heads, past, head), uniform(rng, B, kv_heads, past, v_head)]


def attention(rng, packed=False, B=2, S=5, T=7, heads=(3, 3), head=4, v_head=4, past=None, mask=None, lengths=None,
              outputs=(1,), dims=None, **attributes):
    qkv, cache = operands(rng, packed, B, S, T, *heads, head, v_head, past)
    if packed:
        attributes |= {"q_num_heads": heads[0], "kv_num_heads": heads[1]}
    inputs = [*qkv, mask, *cache, None if lengths is None else numpy.array(lengths)]
    return one_node("Attention", inputs, outputs, dims, **attributes)


def bool_mask(rng, *shape, blind=()):
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True
    for row in blind:
        mask[..., row, :] = False
    return mask


def add(name, build):
    ATTENTION[name] = build


add("packed", functools.partial(attention, packed=True))
add("packed, causal", functools.partial(attention, packed=True, S=7, is_causal=1))
add("packed, fewer heads of keys", functools.partial(attention, packed=True, heads=(6, 2), v_head=3, scale=0.3))
add("packed, one head of keys, causal", functools.partial(attention, packed=True, heads=(4, 1), is_causal=1, S=9))
add("packed, with a cache", functools.partial(attention, packed=True, past=3, outputs=(1, 1, 1), is_causal=1))
add("packed, the cache without a past", functools.partial(attention, packed=True, outputs=(1, 1, 1)))
add("apart, the cache without a past", functools.partial(attention, outputs=(1, 0, 1)))
add("a cache nobody wants", functools.partial(attention, past=4, heads=(4, 2)))
add("scores", functools.partial(attention, outputs=(1, 0, 0, 1), is_causal=1, S=7))
add("scores that are capped", functools.partial(attention, outputs=(1, 0, 0, 1), softcap=0.5, qk_matmul_output_mode=1,
                                                heads=(4, 2)))
add("scores of fewer heads", functools.partial(attention, outputs=(1, 0, 0, 1), heads=(6, 3), v_head=9))
add("one query and one key", functools.partial(attention, B=1, S=1, T=1, heads=(1, 1), head=1, v_head=1, is_causal=1))
add("a window", functools.partial(attention, S=6, T=6, left_window_size=2, right_window_size=1))
add("a window that leaves queries blind", functools.partial(attention, S=9, T=3, left_window_size=1))
add("a causal window after a cache", functools.partial(attention, past=5, S=3, T=3, is_causal=1, left_window_size=2))
add("lengths", functools.partial(attention, lengths=[3, 7]))
add("causal lengths", functools.partial(attention, B=3, lengths=[7, 5, 2], is_causal=1, heads=(4, 2)))
add("a window by lengths", functools.partial(attention, lengths=[6, 4], left_window_size=1, right_window_size=0))
for mode in (2, 3):
    add(f"masked scores, mode {mode}", lambda rng, mode=mode: attention(
        rng, mask=bool_mask(rng, 5, 7, blind=[2]), outputs=(1, 0, 0, 1), qk_matmul_output_mode=mode))
add("a mask of numbers", lambda rng: attention(rng, mask=uniform(rng, 2, 1, 5, 7), heads=(4, 2)))
add("a mask of each head", lambda rng: attention(rng, mask=bool_mask(rng, 3, 5, 7, blind=[0, 4]), is_causal=1))
add("a mask of keys", lambda rng: attention(rng, packed=True, mask=bool_mask(rng, 2, 1, 1, 7)))
add("a mask of one axis", lambda rng: attention(rng, mask=bool_mask(rng, 7)))
add("a mask shorter than the keys", lambda rng: attention(rng, past=2, mask=uniform(rng, 5, 6), heads=(2, 1)))

RUNNING = {(0, 0): ("B", 1, 3), (1, 0): ("B", 1, 3), (2, 0): ("B", 1, 3), (0, 2): ("S", 1, 9), (1, 2): ("T", 1, 9),
           (2, 2): ("T", 1, 9)}
PAST = {(4, 0): ("B", 1, 3), (5, 0): ("B", 1, 3), (4, 2): ("P", 1, 9), (5, 2): ("P", 1, 9)}
PACKED = {(0, 1): ("S", 1, 9), (1, 1): ("S", 1, 9), (2, 1): ("S", 1, 9)}
add("extents at run time", functools.partial(attention, dims=RUNNING, heads=(4, 2), is_causal=1))
add("a cache of run-time length", functools.partial(attention, dims=RUNNING | PAST, past=4, outputs=(1, 1, 1, 1),
                                                    is_causal=1, left_window_size=3))
add("lengths and extents at run time", functools.partial(attention, dims=RUNNING | {(6, 0): ("B", 1, 3)}, lengths=[7, 4],
                                                         is_causal=1))
add("packed at run time", functools.partial(attention, packed=True, dims=PACKED, S=7, is_causal=1, heads=(4, 2)))


# ---- RotaryEmbedding ----

def rotary(rng, packed=False, positions=True, turned=None, head=8, dims=None, **attributes):
    B, S, heads, half = 2, 5, 3, (turned or head) // 2
    x = uniform(rng, B, S, heads * head) if packed else uniform(rng, B, heads, S, head)
    angles = rng.uniform(0, 6, (11, half) if positions else (B, S, half)).astype(numpy.float32)
    places = rng.integers(0, 11, (B, S)) if positions else None
    attributes |= {"num_heads": heads} if packed else {}
    return one_node("RotaryEmbedding", [x, numpy.cos(angles), numpy.sin(angles), places], (1,), dims,
                    rotary_embedding_dim=turned, **attributes)


for packed in (False, True):
    for interleaved in (0, 1):
        kind = f"{'packed' if packed else 'apart'}, {'neighbours' if interleaved else 'halves'}"
        add(f"turned, {kind}", functools.partial(rotary, packed=packed, interleaved=interleaved))
        add(f"turned in part, {kind}", functools.partial(rotary, packed=packed, interleaved=interleaved, turned=6,
                                                         positions=False))
add("turned at run time", functools.partial(rotary, dims={
    (0, 0): ("B", 1, 4), (3, 0): ("B", 1, 4), (0, 2): ("S", 1, 9), (3, 1): ("S", 1, 9)}))


# ---- gates, causal convolutions, linear attention ----

add("SwiGLU", lambda rng: one_node("SwiGLU", [uniform(rng, 3, 17), uniform(rng, 3, 17)], (1,), alpha=1.5))


def causal_conv(rng, taps=4, bias=False, past=False, L=6, dims=None, outputs=(1, 1), **attributes):
    inputs = [uniform(rng, 2, 5, L), uniform(rng, 5, 1, taps), uniform(rng, 5) if bias else None,
              uniform(rng, 2, 5, taps - 1) if past else None]
    return one_node("CausalConvWithState", inputs, outputs, dims, **attributes)


add("causal conv", causal_conv)
add("causal conv with a past and a bias", functools.partial(causal_conv, past=True, bias=True, activation="silu"))
add("causal conv of less than its taps", functools.partial(causal_conv, past=True, L=2, activation="swish"))
add("causal conv of one tap", functools.partial(causal_conv, taps=1, outputs=(1, 0), activation="none"))
add("causal conv at run time", functools.partial(causal_conv, bias=True, dims={(0, 0): ("B", 1, 3), (0, 2): ("L", 1, 9)}))


def linear(rng, rule=None, T=5, heads=(4, 2), head=3, v_head=6, past=True, decays=None, rates=None, dims=None):
    B, kv = 2, heads[1]
    q, k, v = uniform(rng, B, T, heads[0] * head), uniform(rng, B, T, kv * head) / 2, uniform(rng, B, T, kv * v_head)
    inputs = [q, k, v, uniform(rng, B, kv, head, v_head) if past else None,
              None if decays is None else -numpy.abs(uniform(rng, B, T, decays)),
              None if rates is None else numpy.abs(uniform(rng, B, T, rates)) / 2]
    return one_node("LinearAttention", inputs, (1, 1), dims, update_rule=rule, q_num_heads=heads[0], kv_num_heads=kv)


add("linear", functools.partial(linear, rule="linear"))
add("linear, gated", functools.partial(linear, rule="gated", decays=6, past=False))
add("linear, gated by head", functools.partial(linear, rule="gated", decays=2, heads=(2, 2)))
add("linear, delta", functools.partial(linear, rule="delta", rates=1))
add("linear, gated delta", functools.partial(linear, decays=2, rates=2))
add("linear, one step", functools.partial(linear, T=1, decays=6, rates=2))
add("linear, one step from nothing", functools.partial(linear, T=1, rule="delta", rates=2, past=False))
add("linear at run time", functools.partial(linear, decays=6, rates=1, past=False, dims={
    (k, axis): name for k in (0, 1, 2, 4, 5) for axis, name in enumerate([("B", 1, 3), ("T", 1, 9)])}))
