// SPDX-License-Identifier: MIT
//! Training, of a module that was compiled with `--train`.
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};
use std::os::raw::c_int;

use crate::weights::{named, set_all};
use crate::{described, element, ffi, refused, Context, Described, Element, Error, Input, Library, Model, Output, Status, Weight};

/// By what a step changes the weights: as PyTorch's optimisers of these names do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// With momentum, if it is not 0.
    Sgd,
    /// `weight_decay` is part of the gradient.
    Adam,
    /// `weight_decay` is apart from it.
    AdamW,
}

/// How a step changes the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    pub rule: Rule,
    pub learning_rate: f32,
    /// Of SGD.
    pub momentum: f32,
    pub nesterov: bool,
    /// Of Adam, below 1.
    pub betas: (f32, f32),
    pub epsilon: f32,
    pub weight_decay: f32,
    /// Above 0: gradients whose norm, over all weights, is larger are scaled to it first.
    pub max_norm: f32,
    /// Gradients are multiplied by it before all else.
    pub gradient_scale: f32,
}

impl Optimizer {
    /// With PyTorch's defaults.
    pub fn new(rule: Rule, learning_rate: f32) -> Optimizer {
        let weight_decay = if rule == Rule::AdamW { 0.01 } else { 0.0 };
        let (momentum, betas, epsilon) = (0.0, (0.9, 0.999), 1e-8);
        let (max_norm, gradient_scale) = (0.0, 1.0);
        Optimizer { rule, learning_rate, momentum, nesterov: false, betas, epsilon, weight_decay, max_norm, gradient_scale }
    }

    fn given(&self) -> ffi::Optimizer {
        ffi::Optimizer {
            struct_size: size_of::<ffi::Optimizer>() as u32,
            rule: self.rule as c_int,
            learning_rate: self.learning_rate,
            momentum: self.momentum,
            beta1: self.betas.0,
            beta2: self.betas.1,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            max_norm: self.max_norm,
            nesterov: i32::from(self.nesterov),
            gradient_scale: self.gradient_scale,
        }
    }
}

impl Library {
    /// NULL, or its table for training, which has all that ffi::Training declares.
    fn training(&self) -> *const ffi::Training {
        let table = self.api as *const ffi::WithTraining;
        unsafe {
            if (self.api().struct_size as usize) < size_of::<ffi::WithTraining>() || (*table).training.is_null() {
                return std::ptr::null();
            }
            let found = (*table).training;
            let whole = (*found).struct_size as usize >= size_of::<ffi::Training>()
                && (*(*found).info).struct_size as usize >= size_of::<ffi::TrainingInfo>();
            if whole { found } else { std::ptr::null() }
        }
    }

    fn training_info(&self) -> Option<&ffi::TrainingInfo> {
        unsafe { self.training().as_ref().map(|it| &*it.info) }
    }

    fn training_list(&self, of: fn(&ffi::TrainingInfo) -> (*const ffi::TensorInfo, i32)) -> Vec<Described> {
        self.training_info().map_or(Vec::new(), |info| {
            let (list, n) = of(info);
            (0..n).map(|i| unsafe { described(element(list, i, info.tensor_size)) }).collect()
        })
    }

    /// The weights that a step changes by their gradients. None, unless `--train` made the module.
    pub fn trained(&self) -> Vec<Described> {
        self.training_list(|info| (info.parameters, info.n_parameters))
    }

    /// The running means and variances that a step changes, which have no gradients.
    pub fn statistics(&self) -> Vec<Described> {
        self.training_list(|info| (info.statistics, info.n_statistics))
    }

    /// Which output is the loss. None: it is outside of the module, or the module does not train.
    pub fn loss(&self) -> Option<usize> {
        self.training_info().and_then(|info| usize::try_from(info.loss).ok())
    }

    fn outer(&self, of: fn(&ffi::TrainingInfo) -> (*const i32, i32)) -> Vec<usize> {
        self.training_info().map_or(Vec::new(), |info| {
            let (list, n) = of(info);
            (0..n as usize).map(|i| unsafe { *list.add(i) as usize }).collect()
        })
    }

    /// Of which outputs `Run::backward_from` takes gradients, of a module of `--outer-loss`.
    pub fn output_gradients(&self) -> Vec<usize> {
        self.outer(|info| (info.output_gradients, info.n_output_gradients))
    }

    /// For which inputs it has them.
    pub fn input_gradients(&self) -> Vec<usize> {
        self.outer(|info| (info.input_gradients, info.n_input_gradients))
    }
}

impl Model {
    /// A context that also computes gradients, and changes the weights by them.
    pub fn trainer(&self) -> Result<Trainer, Error> {
        let training = self.library().training();
        if training.is_null() {
            let words = format!("{}: expected a module that `rnncc --train` made, of this version", self.library().name());
            return refused(Status::Unsupported, words);
        }
        Ok(Trainer { context: self.context()?, training })
    }
}

/// A context of a module that trains. Weights are the model's, gradients the context's: several trainers of a model may
/// run at once, while others change its weights. A run ends with the weights that it began with.
///
/// ```no_run
/// # use rnncc::{Input, Optimizer, Output, Rule};
/// # fn train(mut trainer: rnncc::Trainer, x: &[f32], labels: &[i64]) -> Result<(), rnncc::Error> {
/// let adam = Optimizer::new(Rule::Adam, 1e-3);
/// let mut loss = [0f32];
/// for _ in 0..100 {
///     let inputs = [Input::new(x, &[32, 40])?, Input::new(labels, &[32])?];
///     trainer.run(&inputs, &mut [Output::new(&mut loss)])?.backward()?.step(&adam)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Trainer {
    context: Context,
    training: *const ffi::Training,
}

// The table is the library's, which the context holds.
unsafe impl Send for Trainer {}

impl Trainer {
    fn table(&self) -> &ffi::Training {
        unsafe { &*self.training }
    }

    // The context itself is not given away: with another model's in its place the table would be of another module.

    pub fn model(&self) -> &Model {
        self.context.model()
    }

    /// See `Context::warmup`, and so on.
    pub fn warmup(&mut self) -> Result<(), Error> {
        self.context.warmup()
    }
    pub fn output_shapes(&mut self, dims: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        self.context.output_shapes(dims)
    }
    pub fn state_get<T: Element>(&mut self, name: &str, slot: Option<i32>, data: &mut [T]) -> Result<(), Error> {
        self.context.state_get(name, slot, data)
    }
    pub fn state_set<T: Element>(&mut self, name: &str, slot: Option<i32>, data: &[T]) -> Result<(), Error> {
        self.context.state_set(name, slot, data)
    }
    pub fn state_reset(&mut self, slot: Option<i32>) -> Result<(), Error> {
        self.context.state_reset(slot)
    }

    /// The forward pass. What it gives back holds the inputs, which the way back reads.
    pub fn run<'t>(&'t mut self, inputs: &[Input<'t>], outputs: &mut [Output<'_>]) -> Result<Run<'t>, Error> {
        self.context.run(inputs, outputs)?;
        Ok(Run { trainer: self, inputs: PhantomData })
    }

    /// Copies a weight, or a running statistic; `data` has exactly its elements.
    pub fn weight(&self, name: &str, data: &mut [f32]) -> Result<(), Error> {
        let (c_name, model) = (named(name)?, self.model());
        let (to, bytes) = (data.as_mut_ptr() as *mut c_void, size_of_val(data));
        let code = unsafe { (self.table().weights_get)(model.handle(), c_name.as_ptr(), to, bytes) };
        self.of_name(name, data.len(), code)
    }

    /// Sets one. A run of before has no way back any more.
    pub fn set_weight(&self, name: &str, data: &[f32]) -> Result<(), Error> {
        let (c_name, model) = (named(name)?, self.model());
        let (from, bytes) = (data.as_ptr() as *const c_void, size_of_val(data));
        let code = unsafe { (self.table().weights_set)(model.handle(), c_name.as_ptr(), from, bytes) };
        self.of_name(name, data.len(), code)
    }

    /// Sets these at once: no run has some of them without the others.
    pub fn set_weights(&self, weights: &[Weight<'_>]) -> Result<(), Error> {
        set_all(self.table().weights_update, self.model().handle(), weights)
    }

    /// What each step's learning rate and weight decay are multiplied by, for this weight; a rate of 0 freezes it.
    pub fn weight_factors(&self, name: &str, learning_rate: f32, weight_decay: f32) -> Result<(), Error> {
        let c_name = named(name)?;
        let set = self.table().weight_factors;
        match unsafe { set(self.model().handle(), c_name.as_ptr(), learning_rate, weight_decay) } {
            0 => Ok(()),
            code => {
                let words = format!("{}: no such weight, or a factor that is negative or not finite", name);
                refused(Status::of(code), words)
            }
        }
    }

    /// All that training goes on from: weights and statistics, what the optimiser keeps, its count of steps, this context's
    /// states, and what Dropout draws next. Gradients are not in it.
    pub fn checkpoint(&mut self) -> Result<Vec<u8>, Error> {
        let context = self.context.context;
        let mut data = vec![0u8; unsafe { (self.table().checkpoint_bytes)(context) }];
        let (to, bytes) = (data.as_mut_ptr() as *mut c_void, data.len());
        self.context.check(unsafe { (self.table().checkpoint_get)(context, to, bytes) })?;
        Ok(data)
    }

    /// Goes on from a checkpoint of this network; one of another, or that is damaged, is refused, and nothing changes.
    pub fn restore(&mut self, checkpoint: &[u8]) -> Result<(), Error> {
        let (from, bytes) = (checkpoint.as_ptr() as *const c_void, checkpoint.len());
        self.context.check(unsafe { (self.table().checkpoint_set)(self.context.context, from, bytes) })
    }

    /// Gradients that were kept are not added any more.
    pub fn drop_gradients(&mut self) -> Result<(), Error> {
        self.context.check(unsafe { (self.table().gradients_keep)(self.context.context, 0) })
    }

    /// Momentum and means are zero again; the weights stay.
    pub fn reset_optimizer(&self) {
        unsafe { (self.table().optimizer_reset)(self.model().handle()) };
    }

    /// What the next runs draw, Dropout's masks, is that of the seed.
    pub fn seed(&mut self, seed: u64) -> Result<(), Error> {
        self.context.check(unsafe { (self.table().seed)(self.context.context, seed) })
    }

    /// The model keeps no message of a call that had `n` numbers.
    fn of_name(&self, name: &str, n: usize, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let library = self.model().library();
        let words = match library.trained().into_iter().chain(library.statistics()).find(|it| it.name == name) {
            Some(it) => format!("{}: expected {} numbers, found {}", name, it.shape.iter().product::<i64>(), n),
            None => format!("{}: no such weight or running statistic", name),
        };
        refused(Status::of(code), words)
    }
}

/// A forward pass that succeeded, from which one way leads back.
pub struct Run<'t> {
    trainer: &'t mut Trainer,
    inputs: PhantomData<&'t [u8]>,
}

impl<'t> Run<'t> {
    /// The gradients of the loss.
    pub fn backward(self) -> Result<Gradients<'t>, Error> {
        let back = self.trainer.table().backward;
        self.went_back(|context| unsafe { back(context) })
    }

    /// Of a module of `--outer-loss`: `given` are gradients of the run's outputs, and `found` gets those of its inputs, in
    /// the order of `Library::output_gradients` and `Library::input_gradients`.
    pub fn backward_from(self, given: &[Input<'_>], found: &mut [Output<'_>]) -> Result<Gradients<'t>, Error> {
        let back = self.trainer.table().backward_from;
        // Input and Output are transparent.
        let (from, room) = (given.as_ptr() as *const ffi::Tensor, found.as_mut_ptr() as *mut ffi::Tensor);
        self.went_back(|context| unsafe { back(context, from, given.len(), room, found.len()) })
    }

    fn went_back(self, back: impl FnOnce(*mut c_void) -> c_int) -> Result<Gradients<'t>, Error> {
        self.trainer.context.check(back(self.trainer.context.context))?;
        Ok(Gradients { trainer: self.trainer })
    }
}

/// Of the weights, until a step uses them.
pub struct Gradients<'t> {
    trainer: &'t mut Trainer,
}

impl Gradients<'_> {
    /// Copies the gradient of a weight; `data` has exactly its elements.
    pub fn get(&mut self, name: &str, data: &mut [f32]) -> Result<(), Error> {
        let (name, context) = (named(name)?, &self.trainer.context);
        let (to, bytes) = (data.as_mut_ptr() as *mut c_void, size_of_val(data));
        context.check(unsafe { (self.trainer.table().gradient)(context.context, name.as_ptr(), to, bytes) })
    }

    /// Of all gradients together, before a step scales them.
    pub fn norm(&mut self) -> Result<f64, Error> {
        let (mut norm, context) = (0.0, &self.trainer.context);
        context.check(unsafe { (self.trainer.table().gradient_norm)(context.context, &mut norm) })?;
        Ok(norm)
    }

    /// They are added to those of the next `Run::backward`, until a step: so a batch may be run in parts.
    pub fn keep(self) -> Result<(), Error> {
        let context = &self.trainer.context;
        context.check(unsafe { (self.trainer.table().gradients_keep)(context.context, 1) })
    }

    /// Changes the model's weights. An error of `Status::Value` names a weight whose gradient is not finite; then, as
    /// after any error, all weights are as before.
    pub fn step(self, by: &Optimizer) -> Result<(), Error> {
        let context = &self.trainer.context;
        context.check(unsafe { (self.trainer.table().step)(context.context, &by.given()) })
    }
}
