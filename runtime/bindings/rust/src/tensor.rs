// SPDX-License-Identifier: MIT
//! Tensors that refer to the caller's slices, row-major.
use crate::ffi;
use crate::{Error, Status};
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::raw::c_int;

mod sealed {
    pub trait Sealed {}
}

/// An element of a tensor: a number that may have any bits.
pub trait Element: Copy + sealed::Sealed {
    #[doc(hidden)]
    const DTYPE: c_int;
}

macro_rules! elements {
    ($($type:ty = $code:expr),*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: c_int = $code;
        })*
    };
}

elements!(f32 = 1, i32 = 2, i64 = 3, u8 = 4, f64 = 6, i8 = 8, i16 = 9, u16 = 10, u32 = 11, u64 = 12);

/// The bits of an IEEE 754 binary16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);
/// The bits of a bfloat16, the upper half of an f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);
/// A boolean of a tensor: 0 is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bool(pub u8);
elements!(F16 = 7, Bf16 = 13, Bool = 5);

fn empty(dtype: c_int) -> ffi::Tensor {
    ffi::Tensor {
        struct_size: size_of::<ffi::Tensor>() as u32,
        dtype,
        data: std::ptr::null_mut(),
        bytes: 0,
        rank: 0,
        shape: [0; ffi::MAX_RANK],
    }
}

/// An input of a run.
#[repr(transparent)]
pub struct Input<'a> {
    #[allow(dead_code)] // the module reads it
    pub(crate) tensor: ffi::Tensor,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// The slice has as many elements as the shape.
    pub fn new<T: Element>(data: &'a [T], shape: &[i64]) -> Result<Self, Error> {
        let mut count: Option<usize> = Some(1);
        for &extent in shape {
            count = usize::try_from(extent).ok().and_then(|it| count?.checked_mul(it));
        }
        if shape.len() > ffi::MAX_RANK || count != Some(data.len()) {
            let words = format!("an input of the shape {:?} has not {} elements", shape, data.len());
            return Err(Error { status: Status::Shape, words });
        }
        let mut tensor = empty(T::DTYPE);
        tensor.data = data.as_ptr() as *mut _; // rnncc.h: inputs are only read
        tensor.bytes = std::mem::size_of_val(data);
        tensor.rank = shape.len() as i32;
        tensor.shape[..shape.len()].copy_from_slice(shape);
        Ok(Input { tensor, data: PhantomData })
    }
}

/// Room for an output. A run sets its shape, and writes as many elements from the beginning.
#[repr(transparent)]
pub struct Output<'a> {
    pub(crate) tensor: ffi::Tensor,
    data: PhantomData<&'a mut [u8]>,
}

impl<'a> Output<'a> {
    pub fn new<T: Element>(data: &'a mut [T]) -> Self {
        let mut tensor = empty(T::DTYPE);
        tensor.data = data.as_mut_ptr() as *mut _;
        tensor.bytes = std::mem::size_of_val(data);
        Output { tensor, data: PhantomData }
    }

    /// Of the last run.
    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape[..self.tensor.rank as usize]
    }
}
