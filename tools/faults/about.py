# SPDX-License-Identifier: MIT
"""The tests that are about a piece of code, whether or not they were profiled: profiles are of a part of the Python tests,
and of each sweep of a part of its cases."""
import functools
import re
import subprocess
from pathlib import Path

from faults import suite

EMULATED = re.compile("aarch64|riscv|neon|sve|rvv|qemu|emulated")
EVERYWHERE = ["differential/test_random_graphs.py"]
# What the name of a file of code begins with, and the C tests and files of Python tests that are about it. All rows that
# fit count.
TABLE = {
    "runtime/(epoch|fork_guard|ring|team|tree|turns)": ["runtime_interleaved"],
    "runtime/(fiber|steps)": ["runtime_steps", "runtime_steps_tsan"],
    "runtime/(shared_pool|turns|pool)": ["runtime_shared_pool"],
    "runtime/(steer|pool)": ["runtime_steer"],
    "runtime/fork_guard": ["runtime_fork"],
    "runtime/(team|tree|epoch|ring|pool)": ["runtime_team", "runtime_tree_tsan", "runtime_pool_tsan"],
    "runtime/": ["runtime_run", "runtime_model", "runtime_fork", "runtime_load", "runtime_topology"],
    "compiler/kernels/(gemm|recurrent)/": ["kernel_sizes"],
    "compiler/kernels/(attention|conv|pool|recurrent)/": ["graphs/test_built_kernels.py"],
    "compiler/kernels/conv/(candidates|winograd)": ["conv_candidates", "choices"],
    "compiler/kernels/conv/(cost|depthwise|direct_plan|plain)": ["conv_tiles"],
    "compiler/kernels/recurrent/cost": ["recurrent_cost"],
    "compiler/kernels/recurrent/(phase|mm_dag|partition|choose|cost)": ["phases", "recurrent_choice", "recurrent_records"],
    "compiler/kernels/(control|matmul/family_matmul|recurrent/family_recurrent)": ["graphs/test_packed_once.py"],
    "compiler/kernels/recurrent/choose_precision|templates/(panel_|simd/)bf16": ["graphs/test_bf16_dynamic.py",
                                                                                 "kernels/test_bf16_loops.py"],
    "compiler/kernels/recurrent/bf16|templates/(gemm_bf16|recurrent_bf16|panel_matrices)": [
        "graphs/test_bf16_dynamic.py", "graphs/test_bf16_parts.py", "graphs/test_recurrent_int8_matrices.py"],
    "compiler/kernels/recurrent/join": ["graphs/test_joined_layers.py"],
    "compiler/kernels/recurrent/(stack|wave)": ["graphs/test_stack_onnx.py"],
    "compiler/kernels/matmul/.*int8|compiler/kernels/gemm/int8": ["kernels/test_quantised_kernels.py",
                                                                "kernels/test_int8_products.py"],
    "compiler/kernels/elementwise/whole": ["graphs/test_byte_chains.py"],
    "compiler/kernels/reduce/": ["graphs/test_fused_reductions.py", "graphs/test_gradients.py"],
    "compiler/kernels/select/": ["kernels/test_detection_kernels.py", "kernels/test_movement_kernels.py"],
    "compiler/template/libclang": ["robustness/test_toolchain.py"],
    "compiler/template/": ["specialise", "tokens", "kernels/test_elementwise_kernels.py", "kernels/test_gemm_kernels.py"],
    "compiler/reroll/": ["reroll", "reroll_cells", "graphs/test_reroll_onnx.py", "graphs/test_reroll_misses.py"],
    "compiler/layout/node_layouts": ["graphs/test_byte_chains.py", "graphs/test_means_of_bytes.py"],
    "compiler/layout/": ["layout", "node_layouts", "graphs/test_wide_blocks.py", "kernels/test_blocked_windows.py",
                         "graphs/test_convolutions.py"],
    "compiler/expand/(attention|rotary|linear|gated)": ["graphs/test_attention.py", "graphs/test_contrib_onnx.py"],
    "compiler/expand/beam": ["graphs/test_beam_search.py"],
    "compiler/expand/einsum": ["graphs/test_einsum.py"],
    "compiler/expand/(fourier|windows)": ["graphs/test_fourier.py"],
    "compiler/expand/(integer|qlinear|quanti|match)": ["kernels/test_quantised_kernels.py", "graphs/test_contrib_onnx.py",
                                                      "graphs/test_optimised_onnx.py", "graphs/test_integer_convolutions.py",
                                                      "graphs/test_convolutions_to_floats.py"],
    "compiler/expand/(blocks|constant_blocks)": ["graphs/test_narrow_weights.py"],
    "compiler/expand/normalise": ["graphs/test_normalisations.py"],
    "compiler/expand/random|compiler/expand/draw|compiler/kernels/random|templates/draw": ["graphs/test_random.py"],
    "compiler/expand/slices": ["graphs/test_run_time_slices.py"],
    "compiler/expand/": ["decompose", "graphs/test_expanded_onnx.py", "graphs/test_contrib_device.py", "graphs/test_contrib_onnx.py"],
    "compiler/passes/.*(quantised|byte|integer)": ["fuse_quantised", "kernels/test_quantised_kernels.py",
                                                  "graphs/test_optimised_onnx.py", "graphs/test_byte_chains.py"],
    "compiler/passes/(fold_by_nodes|derive|take)": ["mutable_weights"],
    "compiler/passes/.*weights|compiler/program/(weight|trace)": ["modules/test_mutable_weights.py",
                                                                 "graphs/test_narrow_weights.py"],
    "compiler/passes/.*(pad|pool|affine|strides)": ["graphs/test_fused_pools.py", "graphs/test_convolutions.py"],
    "compiler/passes/(legalize|number)": ["kernels/test_half_networks.py", "graphs/test_random.py"],
    "compiler/program/verify": ["verify_program"],
    "compiler/program/(fit|gradient|plan|live|over)": ["plan_memory", "networks/test_memory_plan.py"],
    "compiler/program/(build|gradient|lower|over)|compiler/kernels/control/|templates/turn_gradients": [
        "graphs/test_control_gradients.py", "graphs/test_gradients_over_turns.py"],
    "compiler/program/(overlap|place|plan)|compiler/layout/": ["graphs/test_parts_in_place.py"],
    "compiler/passes/match_normal": ["graphs/test_normalisations.py"],
    "compiler/passes/": ["graphs/test_onnx_models.py", "graphs/test_optimised_onnx.py", "graphs/test_chains.py"],
    "compiler/program/": ["graphs/test_control_onnx.py", "graphs/test_data_dependent_onnx.py", "graphs/test_chains.py"],
    "compiler/kernels/attention/|templates/attention": ["graphs/test_fused_attention.py", "graphs/test_attention.py"],
    "compiler/kernels/control/": ["graphs/test_control_onnx.py"],
    "compiler/kernels/(control|index)/|templates/gather_in_place": ["graphs/test_reordered_rows.py"],
    "templates/(parts/)?(conv_.*|winograd_|pool_|mean_|global_mean_|mean_pool_)int8|templates/requantise": ["graphs/test_integer_convolutions.py"],
    "compiler/kernels/conv/|templates/(windows|conv_(direct|plain|depthwise|pad|panel))": [
        "graphs/test_convolutions.py", "graphs/test_conv_forms.py", "graphs/test_recorded_convolutions.py",
        "graphs/test_integer_convolutions.py"],
    "compiler/kernels/conv/(winograd|second)|templates/.*winograd": ["kernels/test_conv_winograd.py",
                                                                     "modules/test_mutable_winograd.py"],
    "compiler/kernels/conv/matrices|templates/(parts/)?conv_matrices": ["graphs/test_integer_convolutions.py",
                                                                       "graphs/test_bf16_convolutions.py"],
    "compiler/kernels/conv/(direct_int8|to_floats)|templates/(conv_direct_int8|parts/conv_int8)": [
        "graphs/test_convolutions_to_floats.py"],
    "compiler/kernels/conv_transposed/(transposed_as|pixel)": ["graphs/test_transposed_as_convolutions.py"],
    "templates/pixel_shuffle": ["kernels/test_pixel_shuffle.py"],
    "compiler/kernels/conv_transposed/|templates/conv_transposed": [
        "graphs/test_volumes.py", "kernels/test_any_plane.py", "kernels/test_blocked_windows.py"],
    "compiler/kernels/elementwise/": ["graphs/test_chains.py", "kernels/test_elementwise_kernels.py",
                                      "kernels/test_type_arithmetic.py", "graphs/test_byte_chains.py"],
    "compiler/kernels/fourier/|templates/fourier": ["graphs/test_fourier.py"],
    "templates/(gemm_packed|pack_panels|panel|simd/(plain|avx))": ["kernels/test_gemm_kernels.py"],
    "templates/(parts/)?(gemm|pack|panel)_int8": ["kernels/test_int8_products.py", "kernels/test_quantised_kernels.py",
                                         "kernels/test_int8_loops.py"],
    "templates/panel_narrow": ["graphs/test_narrow_weights.py"],
    "compiler/kernels/matmul/convolutions": ["graphs/test_convolutions_as_products.py"],
    "compiler/kernels/(gemm|matmul)/|templates/(gemm|pack|panel)": ["graphs/test_matmul_onnx.py",
                                                                    "graphs/test_narrow_weights.py",
                                                                    "kernels/test_int8_products.py"],
    "compiler/kernels/(index|move|select)/|templates/(copy|gather|scatter|pad_map|one_hot|reverse|trilu|rows)": [
        "kernels/test_movement_kernels.py", "kernels/test_type_movement.py"],
    "compiler/kernels/normalise/|templates/(normalise|lrn|lp_norm)": ["graphs/test_normalisations.py"],
    "templates/ctc": ["graphs/test_ctc.py"],
    "templates/cross": ["graphs/test_cross_entropy.py"],
    "templates/(pool_plain|global_pool)": ["kernels/test_blocked_windows.py", "kernels/test_any_plane.py"],
    "compiler/(kernels/pool/(pool|family_mean)|ir/integer_mean)|templates/(pool_int8|(global_)?mean_|windows)": [
        "graphs/test_means_of_bytes.py"],
    "compiler/kernels/pool/|templates/(parts/pool|pool|global|windows)": ["graphs/test_partial_windows.py",
                                                                          "graphs/test_plain_pools.py", "graphs/test_volumes.py"],
    "templates/conv_weight_gradient|compiler/kernels/conv/(family_conv_gradient|padded)|compiler/differentiate/of_windows": [
        "graphs/test_conv_gradients.py"],
    "compiler/kernels/recurrent/.*(grad|train)|templates/(parts/|recurrent|peephole|weight).*(gradient|train)": [
        "graphs/test_recurrent_gradients.py"],
    "compiler/kernels/recurrent/int8|templates/(recurrent|panel)_int8": ["graphs/test_recurrent_int8.py", "graphs/test_recurrent_int8_matrices.py"],
    "templates/(parts/recurrent|recurrent_steps)": ["kernels/test_recurrent_kernels.py"],
    "compiler/kernels/recurrent/|templates/.*recurrent": ["graphs/test_recurrent_onnx.py", "graphs/test_recurrent_variants.py",
                                                          "graphs/test_stack_onnx.py", "graphs/test_joined_layers.py"],
    "templates/(range_parts|quantise)": ["kernels/test_quantised_kernels.py"],
    "templates/reduce": ["graphs/test_fused_reductions.py"],
    "compiler/kernels/reduce/|templates/(reduce|arg|cumsum|softmax|batch_norm|elementwise|chain|simd/math)": [
        "kernels/test_elementwise_kernels.py"],
    "compiler/kernels/sample/|templates/resize": ["graphs/test_resize.py", "graphs/test_run_time_extents.py"],
    "compiler/kernels/sample/|templates/(grid|roi)": ["graphs/test_sampling.py"],
    "compiler/kernels/sample/|templates/deform": ["graphs/test_deform_conv.py"],
    "templates/(nms|top_k)": ["kernels/test_detection_kernels.py"],
    "templates/(nonzero|unique|range_found)": ["graphs/test_data_dependent_onnx.py"],
    "templates/scalar|templates/double": ["kernels/test_type_arithmetic.py"],
    "compiler/differentiate/of_recurrent": ["graphs/test_recurrent_gradients.py"],
    "compiler/differentiate/(body_back|flow|of_if|of_loop|over_turns|weights)": ["graphs/test_control_gradients.py",
                                                                                 "graphs/test_gradients_over_turns.py"],
    "compiler/differentiate/": ["graphs/test_gradients.py", "modules/test_outer_loss.py", "modules/test_training.py",
                                "modules/test_trained_statistics.py", "graphs/test_control_gradients.py"],
    "compiler/emit/check_unit": ["robustness/test_toolchain.py"],
    "compiler/emit/(describe|emit_note)": ["modules/test_inspect_page.py", "modules/test_inspect.py", "modules/test_report.py"],
    "compiler/emit/emit_dot": ["graphs/test_reroll_onnx.py"],
    "compiler/emit/(emit_header|header_names)": ["modules/test_header.py", "modules/test_static.py", "modules/test_edge.py"],
    "compiler/emit/emit_mutable": ["modules/test_mutable_weights.py", "modules/test_rnnrun_weights.py"],
    "compiler/emit/emit_(operand|pointers|schedule)": ["graphs/test_control_onnx.py", "graphs/test_data_dependent_onnx.py",
                                                       "graphs/test_stack_onnx.py", "modules/test_profile.py"],
    "compiler/emit/emit_tables": ["modules/test_header.py", "modules/test_outer_loss.py", "modules/test_mutable_weights.py",
                                  "graphs/test_data_dependent_onnx.py"],
    "compiler/emit/emit_unit": ["modules/test_emitted_c.py", "robustness/test_toolchain.py"],
    "compiler/emit/": ["modules/test_rnnrun.py", "modules/test_artifact.py", "modules/test_bundle.py"],
    "compiler/link/(archive|write_build)": ["modules/test_static.py", "modules/test_emitted_c.py"],
    "compiler/link/build_module": ["robustness/test_toolchain.py", "modules/test_static.py", "modules/test_musl.py"],
    "compiler/link/built_runtime": ["modules/test_built_runtime.py"],
    "compiler/link/(call_graph|elf_file|stack)": ["stack_sizes", "modules/test_stack.py"],
    "compiler/link/(check_module|elf_file|source_folder)": ["robustness/test_toolchain.py"],
    "compiler/link/(source_folder|write_)": ["modules/test_emitted_c.py", "modules/test_edge.py",
                                             "modules/test_several_targets.py"],
    "compiler/link/wheel": ["bindings/test_module_wheel.py"],
    "compiler/link/": ["modules/test_artifact.py", "modules/test_bundle.py"],
    "compiler/quantise/(apart|module|npy|samples)": ["modules/test_quantize_input.py"],
    "compiler/quantise/(moments|rewrite|weights)": ["modules/test_quantize_feedback.py"],
    "compiler/quantise/": ["modules/test_quantize.py", "modules/test_quantize_input.py", "modules/test_quantize_feedback.py"],
    "compiler/": EVERYWHERE,
    "templates/": EVERYWHERE,
}


def tests_about(file):
    """(C tests, files of Python tests without `tests/`), those of the first rows first."""
    found = dict.fromkeys(test for start, tests in TABLE.items() if re.match(start, file) for test in tests)
    return [test for test in found if not test.endswith(".py")], [test for test in found if test.endswith(".py")]


class About:
    def __init__(self, root, build):
        self.root, self.build = root, build

    @functools.cache
    def cases(self, file):
        """All that run by default, in an order of their own."""
        command = [".venv/bin/python", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", f"tests/{file}"]
        said = subprocess.run(command, cwd=self.root, env=suite.environment(self.build), capture_output=True, text=True).stdout
        return [line for line in said.splitlines() if line.startswith("tests/") and "::" in line]

    def files_of(self, fault):
        """Besides those of the table, of a template the tests of kernels that name it, or one that it is a part of."""
        _, found = tests_about(fault.file)
        for path in sorted((self.root / "tests/kernels").glob("test_*.py")):
            if any(f'"{stem}"' in path.read_text() for stem in self.templates_of(fault.file)):
                found.insert(0, f"kernels/{path.name}")
        return list(dict.fromkeys(found))

    @functools.cache
    def templates_of(self, file):
        from faults.candidates import includers
        path = Path(file)
        if path.parts[0] != "templates":
            return set()
        return {path.stem} if path.suffix == ".c" else includers(self.root, path.name)

    def of(self, fault):
        """File by file in turn, of each file functions in turn, and of these cases that the fault's key chooses; those that
        are emulated last, because they take longest."""
        from faults.candidates import varied
        from faults.places import digest_of
        columns = [varied(sorted(self.cases(file), key=lambda name: digest_of(fault.key, name)))
                   for file in self.files_of(fault)]
        longest = max(map(len, columns), default=0)
        mixed = [column[row] for row in range(longest) for column in columns if row < len(column)]
        return sorted(mixed, key=lambda name: bool(EMULATED.search(name)))
