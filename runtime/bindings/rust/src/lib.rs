// SPDX-License-Identifier: MIT
//! Runs networks that rnncc has compiled: `rnncc model.onnx -o model.so`.
//!
//! ```no_run
//! # fn main() -> Result<(), rnncc::Error> {
//! let library = unsafe { rnncc::Library::load("digits_rnn.so")? };
//! let mut context = library.model(rnncc::Options::default())?.context()?;
//! let (image, mut probability) = ([0f32; 64], [0f32; 10]);
//! let mut outputs = [rnncc::Output::new(&mut probability)];
//! context.run(&[rnncc::Input::new(&image, &[1, 8, 8])?], &mut outputs)?;
//! # Ok(())
//! # }
//! ```
//!
//! Every object holds what it was made of: the library is closed after its last model, a model ends after its last
//! context. A context is one stream of runs with its states; it may move between threads.
mod elf;
mod ffi;
mod pool;
mod tensor;
mod training;
mod weights;

pub use pool::{Executor, Pool};
pub use tensor::{Bf16, Bool, Element, Input, Output, F16};
pub use training::{Gradients, Optimizer, Rule, Run, Trainer};
pub use weights::Weight;

use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::mem::{size_of, size_of_val};
use std::os::raw::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

/// What kind of error it is: `rnncc_status` of rnncc.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    Argument,
    Shape,
    Bound,
    Dtype,
    Size,
    Value,
    Memory,
    Unsupported,
    Unknown,
}

impl Status {
    fn of(code: c_int) -> Status {
        use Status::*;
        let known = [Argument, Shape, Bound, Dtype, Size, Value, Memory, Unsupported];
        usize::try_from(code - 1).ok().and_then(|at| known.get(at).copied()).unwrap_or(Unknown)
    }
}

/// A status, and the module's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub words: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Error {}

/// needs: NULL, or a C string.
unsafe fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    CStr::from_ptr(words).to_string_lossy().into_owned()
}

/// A dim that is known only at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    pub name: String,
    pub min: i64,
    pub opt: i64,
    pub max: i64,
    pub multiple: i64,
}

/// Bytes of a thread's stack: of the caller's in a run, in any call, of a worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    pub run: usize,
    pub call: usize,
    pub worker: usize,
}

/// An input, an output or a state. An extent of -1 is known only at run time; `max_shape` is the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    pub shape: Vec<i64>,
    pub max_shape: Vec<i64>,
}

unsafe fn described(info: *const ffi::TensorInfo) -> Described {
    let info = &*info;
    let rank = info.rank as usize;
    Described { name: text(info.name), shape: info.shape[..rank].to_vec(), max_shape: info.max_shape[..rank].to_vec() }
}

/// Element `index` of a list whose elements have `size` bytes.
unsafe fn element<T>(list: *const T, index: i32, size: u32) -> *const T {
    (list as *const u8).add(index as usize * size as usize) as *const T
}

struct Loaded(*mut c_void);

/// A compiled module, or one network of it. A clone is the same.
#[derive(Clone)]
pub struct Library {
    loaded: Arc<Loaded>,
    api: *const ffi::Api,
}

// The module's tables are constant, and its functions may be called by any thread.
unsafe impl Send for Loaded {}
unsafe impl Sync for Loaded {}
unsafe impl Send for Library {}
unsafe impl Sync for Library {}

impl Drop for Loaded {
    fn drop(&mut self) {
        unsafe { ffi::dlclose(self.0) };
    }
}

fn refused<T>(status: Status, words: String) -> Result<T, Error> {
    Err(Error { status, words })
}

impl Library {
    /// Loads a module. Without a slash the path is in the current folder.
    ///
    /// # Safety
    /// The file is code, which runs with this program's rights: it must be a module that rnncc made.
    pub unsafe fn load(path: &str) -> Result<Library, Error> {
        let path = if path.contains('/') { path.to_string() } else { format!("./{}", path) };
        if elf::is_no_file(&path) {
            let words = format!("{}: expected a file, found a folder, a pipe or a device", path);
            return refused(Status::Argument, words);
        }
        if let Some((due, bytes)) = elf::cut_short(&path) {
            let words = format!("{}: cut short: expected at least {} bytes, found {}", path, due, bytes);
            return refused(Status::Argument, words);
        }
        let name = CString::new(path.as_str())
            .map_err(|_| Error { status: Status::Argument, words: "a path with a NUL".to_string() })?;
        let handle = ffi::dlopen(name.as_ptr(), ffi::RTLD_NOW);
        if handle.is_null() {
            return refused(Status::Argument, format!("cannot load module: {}", text(ffi::dlerror())));
        }
        let loaded = Arc::new(Loaded(handle));
        let symbol = ffi::dlsym(handle, b"rnncc_module_query\0".as_ptr() as *const c_char);
        if symbol.is_null() {
            let words = format!("{}: not a module of rnncc, it has no symbol rnncc_module_query", path);
            return refused(Status::Argument, words);
        }
        let query: ffi::Query = std::mem::transmute(symbol);
        let mut why = ptr::null();
        let api = query(ffi::ABI, &mut why);
        if api.is_null() {
            return refused(Status::Unsupported, format!("{}: {}", path, text(why)));
        }
        if ((*api).struct_size as usize) < size_of::<ffi::Api>() {
            return refused(Status::Unsupported, format!("{}: its table of functions is damaged", path));
        }
        Ok(Library { loaded, api })
    }

    /// The network of that name, of a module with several.
    pub fn network(&self, name: &str) -> Result<Library, Error> {
        let networks = self.networks();
        match networks.iter().position(|it| it.name() == name) {
            Some(at) => Ok(networks[at].clone()),
            None => {
                let names: Vec<String> = networks.iter().map(Library::name).collect();
                refused(Status::Argument, format!("the module has no network {}; it has {}", name, names.join(", ")))
            }
        }
    }

    /// All of its networks.
    pub fn networks(&self) -> Vec<Library> {
        let api = self.api();
        let tables = (0..api.n_networks as usize).map(|i| unsafe { *api.networks.add(i) });
        tables.map(|api| Library { loaded: self.loaded.clone(), api }).collect()
    }

    pub fn name(&self) -> String {
        unsafe { text(self.info().name) }
    }
    pub fn isa(&self) -> String {
        unsafe { text(self.info().isa) }
    }

    /// What calls take of a thread's stack at most; None: it is not known.
    pub fn stack(&self) -> Option<Stack> {
        if (self.info().struct_size as usize) < size_of::<ffi::StackInfo>() {
            return None;
        }
        let it = unsafe { &*((*self.api).info as *const ffi::StackInfo) };
        let stack = Stack { run: it.run_stack_bytes, call: it.call_stack_bytes, worker: it.worker_stack_bytes };
        (stack.call > 0).then_some(stack)
    }

    pub fn dims(&self) -> Vec<Dim> {
        let info = self.info();
        let at = |i| unsafe { &*element(info.dims, i, info.dim_size) };
        let dims = (0..info.n_dims).map(at);
        let named = |it: &ffi::DimInfo| unsafe { text(it.name) };
        dims.map(|it| Dim { name: named(it), min: it.min, opt: it.opt, max: it.max, multiple: it.multiple }).collect()
    }

    pub fn inputs(&self) -> Vec<Described> {
        let info = self.info();
        (0..info.n_inputs).map(|i| unsafe { described(element(info.inputs, i, info.tensor_size)) }).collect()
    }
    pub fn outputs(&self) -> Vec<Described> {
        let info = self.info();
        (0..info.n_outputs).map(|i| unsafe { described(element(info.outputs, i, info.tensor_size)) }).collect()
    }
    pub fn states(&self) -> Vec<Described> {
        let info = self.info();
        (0..info.n_states).map(|i| unsafe { described((*element(info.states, i, info.state_size)).tensor) }).collect()
    }

    /// Weights and workers.
    pub fn model(&self, options: Options) -> Result<Model, Error> {
        if options.pool.is_some() {
            self.later()?;
        }
        let executor = options.executor.clone().map(Box::new);
        let given = options.given(executor.as_deref());
        let (mut model, mut why) = (ptr::null_mut(), ptr::null());
        let code = unsafe { (self.api().model_create)(&given, &mut model, &mut why) };
        if code != 0 {
            return refused(Status::of(code), unsafe { text(why) });
        }
        Ok(Model(Arc::new(Made {
            library: self.clone(),
            model,
            _workers: (options.pool_of, options.pool),
            _executor: executor,
        })))
    }

    // Pointers to larger tables are made of `self.api` and its `info`, not of these: a reference reaches no further than
    // its struct.
    fn api(&self) -> &ffi::Api {
        unsafe { &*self.api }
    }
    fn info(&self) -> &ffi::Info {
        unsafe { &*self.api().info }
    }
}

/// How a model runs; see rnncc_options of rnncc.h.
#[derive(Clone, Default)]
pub struct Options {
    /// 0: one for each core that the process may use.
    pub threads: i32,
    pub bind_threads: bool,
    /// The workers of another model of the same module.
    pub pool_of: Option<Model>,
    pub share_all: bool,
    /// The threads of this pool, of any module.
    pub pool: Option<Pool>,
    /// A run that finds the workers busy waits for them, and of those that wait the highest priority goes first. Else it
    /// is done by its caller's thread alone.
    pub waits: bool,
    pub priority: i32,
    /// A module whose weights are not those that were compiled is an error.
    pub check_weights: bool,
    /// The host's threads in place of workers.
    pub executor: Option<Executor>,
}

impl Options {
    /// executor: a copy of this one's, which outlives what is made.
    fn given(&self, executor: Option<&Executor>) -> ffi::Options {
        ffi::Options {
            struct_size: size_of::<ffi::Options>() as u32,
            threads: self.threads,
            bind_threads: i32::from(self.bind_threads),
            parallel_for: executor.map_or(ptr::null(), |_| pool::parallel_for as *const c_void),
            host: executor.map_or(ptr::null_mut(), |it| it as *const Executor as *mut c_void),
            steer_threads: 0,
            pool_of: self.pool_of.as_ref().map_or(ptr::null_mut(), |it| it.0.model),
            share_all: i32::from(self.share_all),
            unused: 0,
            thread_start: ptr::null(),
            pool: self.pool.as_ref().map_or(ptr::null_mut(), Pool::get),
            by_steps: i32::from(executor.is_some()),
            waits: i32::from(self.waits),
            priority: self.priority,
            unused_too: 0,
            check_weights: i32::from(self.check_weights),
            unused_last: 0,
        }
    }
}

struct Made {
    library: Library,
    model: *mut c_void,
    _workers: (Option<Model>, Option<Pool>), // whose it has
    _executor: Option<Box<Executor>>,
}

unsafe impl Send for Made {}
unsafe impl Sync for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        unsafe { (self.library.api().model_destroy)(self.model) };
    }
}

/// Weights and workers, which contexts share. A clone is the same.
#[derive(Clone)]
pub struct Model(Arc<Made>);

impl Model {
    pub fn threads(&self) -> i32 {
        unsafe { (self.0.library.api().model_threads)(self.0.model) }
    }
    pub fn library(&self) -> &Library {
        &self.0.library
    }
    fn handle(&self) -> *mut c_void {
        self.0.model
    }

    /// A stream of runs, whose states are zero.
    pub fn context(&self) -> Result<Context, Error> {
        let (mut context, mut why) = (ptr::null_mut(), ptr::null());
        let create = self.0.library.api().context_create;
        let code = unsafe { create(self.0.model, ptr::null_mut(), 0, &mut context, &mut why) };
        if code != 0 {
            return refused(Status::of(code), unsafe { text(why) });
        }
        Ok(Context { model: self.clone(), context })
    }
}

/// One stream of runs, with its states.
pub struct Context {
    model: Model,
    context: *mut c_void,
}

// A context is used by one thread at a time, which &mut sees to.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { (self.api().context_destroy)(self.context) };
    }
}

impl Context {
    fn api(&self) -> &ffi::Api {
        self.model.library().api()
    }

    fn check(&self, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        refused(Status::of(code), unsafe { text((self.api().last_error)(self.context)) })
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The first run is then as fast as the next.
    pub fn warmup(&mut self) -> Result<(), Error> {
        self.check(unsafe { (self.api().warmup)(self.context) })
    }

    /// Inputs and outputs stand in the order of the module's lists. After an error outputs and states are as before.
    /// Allocates nothing, unless it fails.
    pub fn run(&mut self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), Error> {
        // Input and Output are transparent.
        let (given, room) = (inputs.as_ptr() as *const ffi::Tensor, outputs.as_mut_ptr() as *mut ffi::Tensor);
        self.check(unsafe { (self.api().run)(self.context, given, inputs.len(), room, outputs.len()) })
    }

    /// Of a run with these extents of the dims: the most where they depend on the data.
    pub fn output_shapes(&mut self, dims: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        let outputs = self.model.library().outputs();
        let mut shapes = vec![[0i64; ffi::MAX_RANK]; outputs.len()];
        let ask = self.api().output_shapes;
        self.check(unsafe { ask(self.context, dims.as_ptr(), dims.len(), shapes.as_mut_ptr(), shapes.len()) })?;
        Ok(shapes.iter().zip(outputs).map(|(shape, it)| shape[..it.shape.len()].to_vec()).collect())
    }

    fn state<T: Element>(&self, name: &str) -> Result<i32, Error> {
        let states = self.model.library().states();
        let at = match states.iter().position(|it| it.name == name) {
            Some(at) => at as i32,
            None => {
                let names: Vec<String> = states.into_iter().map(|it| it.name).collect();
                return refused(Status::Argument, format!("no state {}; there are: {}", name, names.join(", ")));
            }
        };
        let info = self.model.library().info();
        let dtype = unsafe { (*(*element(info.states, at, info.state_size)).tensor).dtype };
        if dtype != T::DTYPE {
            return refused(Status::Dtype, format!("state {} has another type of element", name));
        }
        Ok(at)
    }

    /// All slots, or one; `data` has exactly their elements.
    pub fn state_get<T: Element>(&mut self, name: &str, slot: Option<i32>, data: &mut [T]) -> Result<(), Error> {
        let (at, slot, bytes) = (self.state::<T>(name)?, slot.unwrap_or(-1), size_of_val(data));
        self.check(unsafe { (self.api().state_get)(self.context, at, slot, data.as_mut_ptr() as *mut c_void, bytes) })
    }
    pub fn state_set<T: Element>(&mut self, name: &str, slot: Option<i32>, data: &[T]) -> Result<(), Error> {
        let (at, slot, bytes) = (self.state::<T>(name)?, slot.unwrap_or(-1), size_of_val(data));
        self.check(unsafe { (self.api().state_set)(self.context, at, slot, data.as_ptr() as *const c_void, bytes) })
    }
    pub fn state_reset(&mut self, slot: Option<i32>) -> Result<(), Error> {
        self.check(unsafe { (self.api().state_reset)(self.context, slot.unwrap_or(-1)) })
    }
}
