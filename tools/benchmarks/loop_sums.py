# SPDX-License-Identifier: MIT
"""The sums that a loop adds to, where they do not stay in one register: SSE adds a sum to a product, in whose register the
result is, and SVE may copy one before it adds. They are followed through the loop's instructions."""
import re

VECTOR = re.compile(r"%xmm\d+|\bz\d+")


def sse(one):
    """(registers that may be added to, the register of the result) of an addition."""
    source, result = one.operands.rsplit(", ", 1)
    return [result, source], result


def sve(one):
    """Of a multiply-add: FMAD multiplies its first register, and adds to its last."""
    registers = VECTOR.findall(one.operands)
    return [registers[0] if one.name.startswith(("fmla", "fmls")) else registers[-1]], registers[0]


def result_of(one):
    """The vector register that an instruction writes, or None."""
    operands = one.operands.rsplit(", ", 1)[-1] if "%" in one.operands else one.operands.split(",")[0]
    found = VECTOR.search(operands)
    return found[0] if found and not one.name.startswith("st") else None


def is_copy(one):
    return one.name in ("movaps", "movprfx", "mov") and len(VECTOR.findall(one.operands)) == 2


def count(code, is_multiply_add, operands_of):
    """The registers, or places in memory, with a sum when the loop begins that a multiply-add adds to, and sums that
    begin within. operands_of: sse or sve."""
    sum_in, sums = {}, set()  # register -> the sum in it; None: no sum
    for at, one in enumerate(code):
        result = result_of(one)
        if is_multiply_add(one):
            added, result = operands_of(one)
            of_operands = [sum_in.get(register, register) for register in added]
            sum_in[result] = next((found for found in of_operands if found), f"new {at}")
            sums.add(sum_in[result])
        elif is_copy(one):
            source, = set(VECTOR.findall(one.operands)) - {result} or {result}
            sum_in[result] = sum_in.get(source, source)
        elif result:
            sum_in[result] = None
    return len(sums)
