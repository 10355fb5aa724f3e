# SPDX-License-Identifier: MIT
"""The hot loops of a module's object code, as llvm-objdump shows them, and how fast llvm-mca says that a core runs them.

A product loop is an innermost loop of which much is multiply-adds. A kernel has several: for tiles of several heights,
for the remainder of an unrolled loop, for columns at an image's border. Hot are those that most of the work goes
through (see hot()). llvm-mca takes a loop's instructions as one straight line that repeats, with every load in the first
cache.
"""
import json
import re
import subprocess
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks import loop_sums

TOOLS = ("llvm-objdump-19", "llvm-mca-19", "llvm-symbolizer-19")
MIN_MULTIPLY_ADDS = 4
TRANSFORM = re.compile(r"k\d+_(transform_(input|output)|output_channels)$")  # functions of conv_winograd
MIN_SUMS = 0.75  # of the sums of the kernel's largest tile: tiles of the last rows have fewer


@dataclass(frozen=True)
class Architecture:
    """What instructions look like in llvm-objdump's listing."""
    triple: str
    comment: str  # begins one
    multiply_add: re.Pattern  # its name
    jump: re.Pattern  # its name
    frame: re.Pattern  # an instruction that makes the other register of `stack` the frame's
    stack: tuple  # of re.Pattern, operands: a vector register, and memory by the stack pointer, or by the frame's
    load: re.Pattern  # name and operands: memory to vector registers
    sum: re.Pattern  # operands of a multiply-add: the register that is added to
    min_share: float = 0.23  # of multiply-adds in a hot loop: more in loops that spill, fewer in a cell's element-wise part
    wandering: object = None  # of loop_sums: how multiply-adds name their sums, where these change registers
    directives: str = ""  # lines for llvm-mca in front of a loop


X86 = Architecture(
    triple="x86_64", comment="#", multiply_add=re.compile(r"vfn?m(add|sub)\d+ps$"), jump=re.compile(r"j[a-z]+$"),
    frame=re.compile(r"movq %rsp, %rbp$"),
    stack=(re.compile(r"%[xyz]mm\d+.*\(%rsp[,)]|\(%rsp[,)].*%[xyz]mm\d+"),
           re.compile(r"%[xyz]mm\d+.*\(%rbp[,)]|\(%rbp[,)].*%[xyz]mm\d+")),
    load=re.compile(r"v\w+ .*\(.*\).*, %[xyz]mm\d+"), sum=re.compile(r"%[xyz]mm\d+(?=(?: \{.*)?$)"))
# A multiplication, a copy of a vector before it, and this addition.
SSE = replace(X86, multiply_add=re.compile(r"addps$"), load=re.compile(r"(mov[aulhs]|add|mul|sub)\w* .*\(.*\).*, %xmm\d+"),
              min_share=0.15, wandering=loop_sums.sse)
AARCH64 = Architecture(
    triple="aarch64", comment="//", multiply_add=re.compile(r"fml[as]$"), jump=re.compile(r"(b\.[a-z]+|b|cbn?z|tbn?z)$"),
    frame=re.compile(r"(mov x29, sp|add x29, sp, .*)$"),
    stack=(re.compile(r"\b[qdv]\d+\b.*\[sp\b"), re.compile(r"\b[qdv]\d+\b.*\[x29\b")), load=re.compile(r"(ld[a-z0-9]+) .*\b[qdsv]\d+"),
    sum=re.compile(r"^v\d+"))
SVE = replace(
    AARCH64, multiply_add=re.compile(r"fm(l[as]|ad|sb)$"),
    stack=(re.compile(r"^z\d+, \["),),  # LDR and STR; whatever else is read or written has its register in braces
    load=re.compile(r"(ld[a-z0-9]+) .*\b[zqdsv]\d+"), wandering=loop_sums.sve)
RVV = Architecture(
    triple="riscv64", comment="#", multiply_add=re.compile(r"vfn?m(acc|sac|add|sub)\.v[fv]$"),
    jump=re.compile(r"(b[a-z]+|j)$"), frame=re.compile(r"addi s0, sp, .*$"),
    stack=(re.compile(r"\b(v|fs|fa|ft)\d+\b.*\(sp\)"), re.compile(r"\b(v|fs|fa|ft)\d+\b.*\(s0\)")),
    load=re.compile(r"(vl\w+\.v|fl[wd]) .*"), sum=re.compile(r"^v\d+"),
    directives="# LLVM-MCA-RISCV-LMUL M1\n# LLVM-MCA-RISCV-SEW E32\n")
INTEL_AND_AMD = ("haswell", "skylake-avx512", "sapphirerapids", "znver3", "znver4")
# target: (its instructions, cores of llvm-mca). Of the cores without AVX, llvm-mca knows few; these run such code, too.
# SiFive's P670 has vectors of 128 bits, Neoverse V1 has SVE of 256.
TARGETS = {
    "x86-64-v4": (X86, ("skylake-avx512", "sapphirerapids", "znver4")),
    "x86-64-v3": (X86, INTEL_AND_AMD),
    "x86-64-v2": (SSE, ("sandybridge", "haswell", "znver3")),
    "x86-64": (SSE, ("sandybridge", "haswell", "znver3")),
    "aarch64-linux-gnu": (AARCH64, ("cortex-a55", "cortex-a72", "neoverse-n1", "neoverse-v1", "apple-m1")),
    "aarch64-linux-gnu+sve256": (SVE, ("neoverse-v1",)),
    "riscv64-linux-gnu+rvv128": (RVV, ("sifive-p670",)),
}
ARCHITECTURES = {target: architecture for target, (architecture, _) in TARGETS.items()}


def cores_of(target):
    return TARGETS[target][1]


def flags_of(target):
    """For clang, so that an object file says where jumps go: RISC-V leaves that to the linker."""
    return "-mno-relax" if ARCHITECTURES[target] is RVV else ""


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    operands: str

    def __str__(self):
        return f"{self.name} {self.operands}".strip()


@dataclass(frozen=True)
class Kernel:
    """As its heading in the emitted C says: the template, and its knobs."""
    index: int
    template: str
    knobs: tuple  # of (name, value); tuples, so that loops can be compared

    @property
    def name(self):
        return f"k{self.index}_{self.template}"

    def tile_loads(self, sums, turns):
        """Vectors and elements that a tile of so many sums loads in so many steps of the depth; None: unknown."""
        if self.template == "conv_depthwise":
            return self.depthwise_loads(sums, turns)
        vectors = self.vectors()
        return turns * (vectors + sums / vectors) if vectors and sums % vectors == 0 else None

    def depthwise_loads(self, pixels, turns):
        """A step is a point of the window. Its row's weights are loaded once, and so is each input column."""
        knobs = dict(self.knobs)
        columns = {i * knobs["STRIDE_W"] + s * knobs["DILATION_W"] for i in range(pixels) for s in range(knobs["WINDOW_W"])}
        return turns / knobs["WINDOW_W"] * (knobs["WINDOW_W"] + len(columns))

    def vectors(self):
        """Vectors that a step of the depth loads once for all rows of a tile; None: this template has other loops."""
        knobs = dict(self.knobs)
        if self.template == "recurrent_steps":
            if knobs["ROWS"] == 1:
                return None
            gates = (1, 3, 2, 4)[knobs["CELL"]]
            return gates * knobs["UNIT_VECTORS"] // knobs["PANEL_PARTS"]
        if self.template == "gemm_packed" and knobs["ROWS"] == 1:
            return None
        return knobs.get({"gemm_packed": "VECTORS", "conv_direct": "OC_VECTORS", "conv_transposed_blocked": "OC_VECTORS",
                          "conv_winograd": "OC_VECTORS"}.get(self.template))


def kernels(source):
    """Index -> Kernel, of the emitted C."""
    heads = re.findall(r"^/\* ---- kernel (\d+), first for .*?: (\w+)(.*)$", source, re.MULTILINE)
    return {int(index): Kernel(int(index), template,
                               tuple((name, int(value)) for name, value in re.findall(r" (\w+)=(\d+)\b", knobs)))
            for index, template, knobs in heads}


@dataclass(frozen=True)
class Loop:
    architecture: Architecture
    framed: bool  # its function addresses the stack by the frame's register, too
    code: tuple  # of Instruction
    kernel: Kernel = None
    transforms: bool = False  # Winograd's input or output: no product of a tile

    @cached_property
    def products(self):
        return [one for one in self.code if self.architecture.multiply_add.match(one.name)]

    @property
    def multiply_adds(self):
        return len(self.products)

    @cached_property
    def sums(self):
        """Registers that are added to."""
        if self.architecture.wandering:
            is_product = self.architecture.multiply_add.match
            return loop_sums.count(self.code, lambda one: is_product(one.name), self.architecture.wandering)
        return len({self.architecture.sum.search(one.operands)[0] for one in self.products})

    @cached_property
    def loads(self):
        """Instructions that read memory into vector registers; a pair counts twice."""
        return sum(2 if one.name == "ldp" else 1 for one in self.code if self.architecture.load.match(str(one)))

    @cached_property
    def spills(self):
        """Instructions that move a vector to the stack or from there."""
        patterns = self.architecture.stack[:2 if self.framed else 1]
        return [str(one) for one in self.code if any(pattern.search(one.operands) for pattern in patterns)]

    @cached_property
    def jumps(self):
        """Before the last."""
        return sum(bool(self.architecture.jump.match(one.name)) for one in self.code[:-1])

    @cached_property
    def turns(self):
        """Steps of the depth that a turn of the loop makes."""
        return self.multiply_adds / self.sums

    @cached_property
    def most_loads(self):
        """That the tile needs; None: unknown."""
        return self.kernel and self.kernel.tile_loads(self.sums, self.turns)


def functions(path, architecture):
    """(name, instructions) of each function of an object file."""
    command = [TOOLS[0], "-d", "--no-show-raw-insn", path]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for part in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        if heading := re.match(r"[0-9a-f]+ <(.*)>:\n", part):
            lines = re.findall(r"^\s*([0-9a-f]+):\s+(\S+)[ \t]*(.*)$", part, re.MULTILINE)
            yield heading[1], [Instruction(int(at, 16), name, operands.split(architecture.comment)[0].strip())
                               for at, name, operands in lines]


def innermost_loops(instructions, jump):
    """The instructions from the target of a jump backwards to the jump, where no other such loop lies within."""
    spans = set()
    for one in instructions:
        target = re.search(r"\b(?:0x)?([0-9a-f]+) <", one.operands) if jump.match(one.name) else None
        if target and int(target[1], 16) <= one.address:
            spans.add((int(target[1], 16), one.address))
    for begin, end in sorted(spans):
        if not any(begin <= b and e <= end for b, e in spans - {(begin, end)}):
            yield tuple(one for one in instructions if begin <= one.address <= end)


def product_loops(path, target):
    architecture = ARCHITECTURES[target]
    loops = []
    for _, instructions in functions(path, architecture):
        framed = any(architecture.frame.match(str(one)) for one in instructions)
        loops += [Loop(architecture, framed, code) for code in innermost_loops(instructions, architecture.jump)]
    loops = [loop for loop in loops if not any("div" in one.name for one in loop.code)]  # as a cell's element-wise part does
    return [loop for loop in loops if loop.multiply_adds >= max(MIN_MULTIPLY_ADDS, architecture.min_share * len(loop.code))]


def inlined_from(path, loops):
    """The names of the functions that each loop was inlined from, of which the line tables know."""
    if not loops:
        return []
    asked = [hex(loop.products[0].address) for loop in loops]
    command = [TOOLS[2], f"--obj={path}", "--inlines", "--output-style=JSON", *asked]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [[frame["FunctionName"] for frame in place["Symbol"]] for place in json.loads(said)]


def with_kernel(loop, names, known):
    """The loop with its kernel, whose index is in the names of all its functions; None: it is of no kernel."""
    index = next((int(match[1]) for match in (re.match(r"k(\d+)_", name) for name in names) if match), None)
    if index is None:
        return None
    return replace(loop, kernel=known[index], transforms=any(TRANSFORM.match(name) for name in names))


def kernel_loops(path, source, target):
    """The product loops of the kernels of an object file, with line tables, that was compiled from this source."""
    loops, known = product_loops(path, target), kernels(source)
    found = [with_kernel(loop, names, known) for loop, names in zip(loops, inlined_from(path, loops))]
    return [loop for loop in found if loop]


def whole_tiles(loops):
    """Those that add to every sum equally often, unlike those at an image's border, which leave columns out, or jump over
    them. A loop that spills has its sums in any register: it counts if it multiplies as much as the largest of the
    others."""
    loops = [loop for loop in loops if loop.jumps <= loop.turns]
    even = [loop for loop in loops if loop.multiply_adds % loop.sums == 0]
    largest = max((loop.multiply_adds for loop in even), default=0)
    return even + [loop for loop in loops if loop not in even and loop.spills and loop.multiply_adds >= largest]


def hot_of_kernel(loops):
    whole = whole_tiles(loops)
    most = max((loop.sums for loop in whole), default=0)
    turns = {loop.sums: max(other.turns for other in whole if other.sums == loop.sums) for loop in whole}
    return [loop for loop in whole if loop.sums >= MIN_SUMS * most and loop.turns == turns[loop.sums]]


def of_kernels(loops):
    """Kernel -> its loops."""
    result = {}
    for loop in loops:
        result.setdefault(loop.kernel, []).append(loop)
    return result


def hot(loops):
    """Of each kernel: loops of whole tiles, with nearly as many sums as any other, and that are not what remains of an
    unrolled loop."""
    products = of_kernels(loop for loop in loops if not loop.transforms)
    return [loop for of_kernel in products.values() for loop in hot_of_kernel(of_kernel)]


@dataclass(frozen=True)
class Cycles:
    """Of one turn of a loop on a core."""
    taken: float
    bound: float  # by its ports: as if nothing waited for a result

    @property
    def over_bound(self):
        return self.taken / self.bound


def assembly(loop):
    """For llvm-mca: jumps go nowhere."""
    return "".join(f"{one.name} {re.sub(r'(0x)?[0-9a-f]+ <.*', '0', one.operands)}\n" for one in loop.code)


def split_loads(text):
    """Multiply-adds with an operand in memory as a load and a multiply-add, which take the same ports."""
    return re.sub(r"^(vfn?m\w+) ([^,]*\([^)]*\)), (%([xyz])mm\d+, .*)$", r"vmovups \2, %\4mm31\n\1 %\4mm31, \3", text,
                  flags=re.MULTILINE)


def narrow_loads(text):
    """Loads of 512 bits as loads of 256, which take the same ports."""
    return re.sub(r"^(vmov[au]ps|vbroadcastss) ([^,]*\(.*\)), %zmm(\d+)$", r"\1 \2, %ymm\3", text, flags=re.MULTILINE)


def plain_broadcasts(text):
    """Broadcasts of 512 bits from memory as loads, which take the same ports."""
    return re.sub(r"^vbroadcastss ([^,]*\(.*\), %zmm\d+)$", r"vmovups \1", text, flags=re.MULTILINE)


# What llvm-mca 19 has wrong of a core. Skylake: a load of 512 bits takes a pipe of the multiply-adds, too, though not as the
# operand of one; the core has ports 2 and 3 for it. Zen 4: so does a broadcast of 512 bits from memory, though not as
# {1to16}; on the core eight multiply-adds and four broadcasts were measured to take 8.2 cycles, by llvm-mca they take 12.
REWRITTEN = {"skylake-avx512": narrow_loads, "znver4": plain_broadcasts}


def readings(loop, core):
    """The loop as it is, and of x86 with the loads of multiply-adds apart. llvm-mca begins such a load only with what makes
    the sum, or on Sapphire Rapids after it, which a core does not wait for: three multiply-adds in a row, two with operands
    in memory, were measured to take 12 cycles on Zen 5, as many as those of registers; by llvm-mca's Zen 4 they take 15.
    But two instructions take more of what a core begins in a cycle than one."""
    text = REWRITTEN.get(core, str)(assembly(loop))
    return [text, split_loads(text)] if loop.architecture is X86 else [text]


def simulated(texts, architecture, core):
    text = "".join(f"# LLVM-MCA-BEGIN\n{architecture.directives}{one}# LLVM-MCA-END\n" for one in texts)
    command = [TOOLS[1], f"-mtriple={architecture.triple}", f"-mcpu={core}", "--json", "-"]
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    views = [region["SummaryView"] for region in json.loads(said)["CodeRegions"]]
    return [Cycles(view["TotalCycles"] / view["Iterations"], view["BlockRThroughput"]) for view in views]


def cycles(loops, core):
    """Cycles of each loop on this core of llvm-mca: the least of its readings, and the least bound. Most readings are alike:
    kernels share loops, and a multiply-add of registers has no load to be apart."""
    if not loops:
        return []
    texts_of = [readings(loop, core) for loop in loops]
    texts = list(dict.fromkeys(text for texts in texts_of for text in texts))
    known = dict(zip(texts, simulated(texts, loops[0].architecture, core)))
    ways = [[known[text] for text in texts] for texts in texts_of]
    return [Cycles(min(one.taken for one in each), min(one.bound for one in each)) for each in ways]
