// SPDX-License-Identifier: MIT
//! rnncc.h as Rust declares it. Structs may have more fields in the module: lists are read by the sizes that it says.
use std::ffi::c_void;
use std::os::raw::{c_char, c_int};

pub const ABI: u32 = 2;
pub const MAX_RANK: usize = 8;

#[repr(C)]
pub struct Tensor {
    pub struct_size: u32,
    pub dtype: c_int,
    pub data: *mut c_void,
    pub bytes: usize,
    pub rank: i32,
    pub shape: [i64; MAX_RANK],
}

#[repr(C)]
pub struct DimInfo {
    pub name: *const c_char,
    pub min: i64,
    pub opt: i64,
    pub max: i64,
    pub multiple: i64,
}

#[repr(C)]
pub struct TensorInfo {
    pub name: *const c_char,
    pub dtype: c_int,
    pub rank: i32,
    pub shape: [i64; MAX_RANK],
    pub max_shape: [i64; MAX_RANK],
    pub dim: [i32; MAX_RANK],
}

#[repr(C)]
pub struct StateInfo {
    pub tensor: *const TensorInfo,
    pub batch_axis: i32,
    pub slots: i32,
}

#[repr(C)]
pub struct Info {
    pub struct_size: u32,
    pub name: *const c_char,
    pub model_version: *const c_char,
    pub isa: *const c_char,
    pub target: *const c_char,
    pub weights_sha256: *const c_char,
    pub build: *const c_char,
    pub weights_bytes: usize,
    pub arena_bytes: usize,
    pub n_dims: i32,
    pub n_inputs: i32,
    pub n_outputs: i32,
    pub n_states: i32,
    pub dim_size: u32,
    pub tensor_size: u32,
    pub state_size: u32,
    pub dims: *const DimInfo,
    pub inputs: *const TensorInfo,
    pub outputs: *const TensorInfo,
    pub states: *const StateInfo,
    // What follows is there only if struct_size says so: in `LaterInfo` and `StackInfo`.
}

/// An Info that has these, too.
#[repr(C)]
pub struct LaterInfo {
    pub first: Info,
    pub weights: *const TensorInfo,
    pub n_weights: i32,
    pub unused: i32,
}

/// A LaterInfo that has these, too.
#[repr(C)]
pub struct StackInfo {
    pub later: LaterInfo,
    pub run_stack_bytes: usize,
    pub call_stack_bytes: usize,
    pub worker_stack_bytes: usize,
}

#[repr(C)]
pub struct Weight {
    pub struct_size: u32,
    pub dtype: c_int,
    pub name: *const c_char,
    pub data: *const c_void,
    pub bytes: usize,
}

#[repr(C)]
pub struct TrainingInfo {
    pub struct_size: u32,
    pub tensor_size: u32,
    pub n_parameters: i32,
    pub loss: i32,
    pub parameters: *const TensorInfo,
    pub n_output_gradients: i32,
    pub n_input_gradients: i32,
    pub output_gradients: *const i32,
    pub input_gradients: *const i32,
    pub n_statistics: i32,
    pub unused: i32,
    pub statistics: *const TensorInfo,
}

#[repr(C)]
pub struct Optimizer {
    pub struct_size: u32,
    pub rule: c_int,
    pub learning_rate: f32,
    pub momentum: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
    pub max_norm: f32,
    pub nesterov: i32,
    pub gradient_scale: f32,
}

#[repr(C)]
pub struct Training {
    pub struct_size: u32,
    pub unused: u32,
    pub info: *const TrainingInfo,
    pub backward: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub gradient: unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void, usize) -> c_int,
    pub step: unsafe extern "C" fn(*mut c_void, *const Optimizer) -> c_int,
    pub gradient_norm: unsafe extern "C" fn(*mut c_void, *mut f64) -> c_int,
    pub weights_get: unsafe extern "C" fn(*const c_void, *const c_char, *mut c_void, usize) -> c_int,
    pub weights_set: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void, usize) -> c_int,
    pub optimizer_reset: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub backward_from: unsafe extern "C" fn(*mut c_void, *const Tensor, usize, *mut Tensor, usize) -> c_int,
    pub seed: unsafe extern "C" fn(*mut c_void, u64) -> c_int,
    pub weights_update: unsafe extern "C" fn(*mut c_void, *const Weight, usize, *mut c_char, usize) -> c_int,
    pub gradients_keep: unsafe extern "C" fn(*mut c_void, i32) -> c_int,
    pub weight_factors: unsafe extern "C" fn(*mut c_void, *const c_char, f32, f32) -> c_int,
    pub checkpoint_bytes: unsafe extern "C" fn(*const c_void) -> usize,
    pub checkpoint_get: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_int,
    pub checkpoint_set: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
}

#[repr(C)]
pub struct Options {
    pub struct_size: u32,
    pub threads: i32,
    pub bind_threads: i32,
    pub parallel_for: *const c_void,
    pub host: *mut c_void,
    pub steer_threads: i32,
    pub pool_of: *mut c_void,
    pub share_all: i32,
    pub unused: i32,
    pub thread_start: *const c_void,
    pub pool: *mut Pool,
    pub by_steps: i32,
    pub waits: i32,
    pub priority: i32,
    pub unused_too: i32,
    pub check_weights: i32,
    pub unused_last: i32,
}

#[repr(C)]
pub struct Pool {
    pub struct_size: u32,
    pub threads: i32,
    pub by_steps: i32,
    pub crowded: i32,
    pub functions_of_modules: [*const c_void; 6],
    pub waiting: unsafe extern "C" fn(*const Pool) -> i32,
}

pub type Body = unsafe extern "C" fn(*mut c_void, c_int);

pub type Words = *mut *const c_char;

#[repr(C)]
pub struct Api {
    pub abi: u32,
    pub struct_size: u32,
    pub info: *const Info,
    pub model_create: unsafe extern "C" fn(*const Options, *mut *mut c_void, Words) -> c_int,
    pub model_destroy: unsafe extern "C" fn(*mut c_void),
    pub model_threads: unsafe extern "C" fn(*const c_void) -> i32,
    pub context_size: unsafe extern "C" fn(*const c_void) -> usize,
    pub context_create: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut *mut c_void, Words) -> c_int,
    pub context_destroy: unsafe extern "C" fn(*mut c_void),
    pub warmup: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub run: unsafe extern "C" fn(*mut c_void, *const Tensor, usize, *mut Tensor, usize) -> c_int,
    pub state_reset: unsafe extern "C" fn(*mut c_void, i32) -> c_int,
    pub state_get: unsafe extern "C" fn(*mut c_void, i32, i32, *mut c_void, usize) -> c_int,
    pub state_set: unsafe extern "C" fn(*mut c_void, i32, i32, *const c_void, usize) -> c_int,
    pub profile: unsafe extern "C" fn(*mut c_void, i32, *mut *const c_void, *mut usize) -> c_int,
    pub last_error: unsafe extern "C" fn(*const c_void) -> *const c_char,
    pub model_narrowed: unsafe extern "C" fn(*const c_void) -> i32,
    pub networks: *const *const Api,
    pub n_networks: i32,
    pub output_shapes: unsafe extern "C" fn(*mut c_void, *const i64, usize, *mut [i64; MAX_RANK], usize) -> c_int,
    // What follows is there only if struct_size says so: in `Later`.
}

/// An Api that has these, too.
#[repr(C)]
pub struct Later {
    pub first: Api,
    pub trace: *const c_void,
    pub pool_create: unsafe extern "C" fn(*const Options, *mut *mut Pool, Words) -> c_int,
    pub pool_destroy: unsafe extern "C" fn(*mut Pool),
}

/// A Later that has this, too.
#[repr(C)]
pub struct WithTraining {
    pub first: Later,
    pub training: *const Training,
}

/// A WithTraining that has these, too.
#[repr(C)]
pub struct WithWeights {
    pub first: WithTraining,
    pub weights_set: unsafe extern "C" fn(*mut c_void, *const Weight, usize, *mut c_char, usize) -> c_int,
    pub weights_get: unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void, usize, *mut c_char, usize) -> c_int,
}

pub type Query = unsafe extern "C" fn(u32, Words) -> *const Api;

pub const RTLD_NOW: c_int = 2;

extern "C" {
    pub fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn dlclose(handle: *mut c_void) -> c_int;
    pub fn dlerror() -> *const c_char;
}
