// SPDX-License-Identifier: MIT
//! Weights of a module that was compiled with `--weights=mutable`.
use std::ffi::CString;
use std::mem::{size_of, size_of_val};
use std::os::raw::{c_char, c_int, c_void};

use crate::{described, element, ffi, refused, text, Described, Element, Error, Library, Model, Status};

const ROOM: usize = 1024; // of a message

/// New numbers of a weight, row-major.
pub struct Weight<'a> {
    name: CString,
    dtype: i32,
    data: &'a [u8],
}

impl<'a> Weight<'a> {
    pub fn new<T: Element>(name: &str, data: &'a [T]) -> Result<Self, Error> {
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr() as *const u8, size_of_val(data)) };
        Ok(Weight { name: named(name)?, dtype: T::DTYPE, data: bytes })
    }
}

type Set = unsafe extern "C" fn(*mut c_void, *const ffi::Weight, usize, *mut c_char, usize) -> c_int;

pub(crate) fn set_all(set: Set, model: *mut c_void, weights: &[Weight<'_>]) -> Result<(), Error> {
    let of = |it: &Weight<'_>| ffi::Weight {
        struct_size: size_of::<ffi::Weight>() as u32,
        dtype: it.dtype,
        name: it.name.as_ptr(),
        data: it.data.as_ptr() as *const c_void,
        bytes: it.data.len(),
    };
    let given: Vec<ffi::Weight> = weights.iter().map(of).collect();
    let mut why = [0 as c_char; ROOM];
    match unsafe { set(model, given.as_ptr(), given.len(), why.as_mut_ptr(), ROOM) } {
        0 => Ok(()),
        code => refused(Status::of(code), unsafe { text(why.as_ptr()) }),
    }
}

pub(crate) fn named(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error { status: Status::Argument, words: "a name with a NUL".to_string() })
}

impl Library {
    fn weight_infos(&self) -> Vec<*const ffi::TensorInfo> {
        unsafe {
            let info = (*self.api).info as *const ffi::LaterInfo;
            if ((*info).first.struct_size as usize) < size_of::<ffi::LaterInfo>() {
                return Vec::new();
            }
            (0..(*info).n_weights).map(|i| element((*info).weights, i, (*info).first.tensor_size)).collect()
        }
    }

    /// Those that `Model::set` can set.
    pub fn weights(&self) -> Vec<Described> {
        self.weight_infos().into_iter().map(|it| unsafe { described(it) }).collect()
    }
}

impl Model {
    fn with_weights(&self) -> Result<&ffi::WithWeights, Error> {
        let library = self.library();
        if (library.api().struct_size as usize) < size_of::<ffi::WithWeights>() {
            return refused(Status::Unsupported, format!("{}: its weights are constant", library.name()));
        }
        Ok(unsafe { &*(library.api as *const ffi::WithWeights) })
    }

    /// Sets these weights at once, while contexts run; see weights_set of rnncc.h.
    pub fn set(&self, weights: &[Weight<'_>]) -> Result<(), Error> {
        let set = self.with_weights()?.weights_set;
        set_all(set, self.handle(), weights)
    }

    /// Copies a weight; `data` has exactly its elements, of its type.
    pub fn get<T: Element>(&self, name: &str, data: &mut [T]) -> Result<(), Error> {
        let get = self.with_weights()?.weights_get;
        let differs = |it: *const ffi::TensorInfo| unsafe { text((*it).name) == name && (*it).dtype != T::DTYPE };
        if self.library().weight_infos().into_iter().any(differs) {
            return refused(Status::Dtype, format!("weight {} has another type of element", name));
        }
        let name = named(name)?;
        let (to, bytes, mut why) = (data.as_mut_ptr() as *mut c_void, size_of_val(data), [0 as c_char; ROOM]);
        match unsafe { get(self.handle(), name.as_ptr(), to, bytes, why.as_mut_ptr(), ROOM) } {
            0 => Ok(()),
            code => refused(Status::of(code), unsafe { text(why.as_ptr()) }),
        }
    }
}
