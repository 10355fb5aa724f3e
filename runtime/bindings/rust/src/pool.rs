// SPDX-License-Identifier: MIT
//! Threads: a pool that models of any modules share, and a host's own.
use std::ffi::c_void;
use std::mem::size_of;
use std::os::raw::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::abort;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::{ffi, refused, text, Error, Library, Options, Status};

/// A host's own way to call `body(0..n)`: in any order, on any threads, or one after the other. It returns when all have
/// been called, each once; else, or if it panics, the process is aborted.
pub type Executor = Arc<dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Send + Sync>;

/// One call of an executor.
struct Bodies {
    body: ffi::Body,
    arg: *mut c_void,
    called: Vec<AtomicBool>,
}

// The module's body is for any thread; each index is called once.
unsafe impl Sync for Bodies {}

impl Bodies {
    fn call(&self, index: usize) {
        if self.called.get(index).map_or(true, |it| it.swap(true, Ordering::Relaxed)) {
            abort();
        }
        unsafe { (self.body)(self.arg, index as c_int) };
    }
}

/// host: an Executor, which the model or the pool holds.
pub(crate) unsafe extern "C" fn parallel_for(host: *mut c_void, n: c_int, body: ffi::Body, arg: *mut c_void) {
    let executor = &*(host as *const Executor);
    let bodies = Bodies { body, arg, called: (0..n).map(|_| AtomicBool::new(false)).collect() };
    let done = catch_unwind(AssertUnwindSafe(|| executor(n as usize, &|index| bodies.call(index))));
    if done.is_err() || !bodies.called.iter().all(|it| it.load(Ordering::Relaxed)) {
        abort();
    }
}

/// host: a &(dyn Fn(i32) + Sync) for as long as the pool is made.
unsafe extern "C" fn thread_start(host: *mut c_void, worker: i32) {
    let start = &*(host as *const &(dyn Fn(i32) + Sync));
    if catch_unwind(AssertUnwindSafe(|| start(worker))).is_err() {
        abort();
    }
}

struct Made {
    library: Library,
    pool: *mut ffi::Pool,
    _executor: Option<Box<Executor>>,
}

// The pool's functions may be called by any thread.
unsafe impl Send for Made {}
unsafe impl Sync for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        if let Ok(api) = self.library.later() {
            unsafe { (api.pool_destroy)(self.pool) };
        }
    }
}

/// Threads that models share, those of other modules, too. A clone is the same.
#[derive(Clone)]
pub struct Pool(Arc<Made>);

impl Pool {
    /// How many there are, the caller of a run among them.
    pub fn threads(&self) -> i32 {
        unsafe { (*self.0.pool).threads }
    }
    /// How many runs wait for them now.
    pub fn waiting(&self) -> i32 {
        unsafe { ((*self.0.pool).waiting)(self.0.pool) }
    }
    pub(crate) fn get(&self) -> *mut ffi::Pool {
        self.0.pool
    }
}

impl Library {
    /// A pool of `threads`, `bind_threads` and `executor` of the options. Its threads run this module's code.
    pub fn pool(&self, options: Options) -> Result<Pool, Error> {
        self.make_pool(options, None)
    }

    /// The same, where `start` is called on each worker as it starts, with its number from 1 on.
    pub fn pool_with(&self, options: Options, start: &(dyn Fn(i32) + Sync)) -> Result<Pool, Error> {
        if options.executor.is_some() {
            return refused(Status::Argument, "an executor's threads are its own to greet".to_string());
        }
        self.make_pool(options, Some(start))
    }

    fn make_pool(&self, options: Options, start: Option<&(dyn Fn(i32) + Sync)>) -> Result<Pool, Error> {
        let api = self.later()?;
        let executor = options.executor.clone().map(Box::new);
        let mut given = options.given(executor.as_deref());
        if let Some(start) = &start {
            given.host = start as *const &(dyn Fn(i32) + Sync) as *mut c_void;
            given.thread_start = thread_start as *const c_void;
        }
        let (mut pool, mut why) = (ptr::null_mut(), ptr::null());
        let code = unsafe { (api.pool_create)(&given, &mut pool, &mut why) };
        if code != 0 {
            return refused(Status::of(code), unsafe { text(why) });
        }
        Ok(Pool(Arc::new(Made { library: self.clone(), pool, _executor: executor })))
    }

    /// The table, of a module that knows pools.
    pub(crate) fn later(&self) -> Result<&ffi::Later, Error> {
        if (self.api().struct_size as usize) < size_of::<ffi::Later>() {
            let words = format!("{}: compiled by an rnncc of before pools", self.name());
            return refused(Status::Unsupported, words);
        }
        Ok(unsafe { &*(self.api as *const ffi::Later) })
    }
}
