// SPDX-License-Identifier: MIT
//! y = w x + b learns 3 x - 1, of x [8]: $RNNCC_TRAINED_MODULE has the loss, the mean of the squared differences to t [8],
//! and $RNNCC_OUTER_MODULE has y, for a loss of the program's own.
use rnncc::{Error, Executor, Input, Library, Model, Optimizer, Options, Output, Rule, Status, Trainer, Weight};
use std::sync::{Arc, Mutex};

fn module(variable: &str) -> Model {
    let path = std::env::var(variable).expect(variable);
    unsafe { Library::load(&path) }.unwrap().model(Options { threads: 2, ..Default::default() }).unwrap()
}

fn samples() -> ([f32; 8], [f32; 8]) {
    let x = [0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|it| it / 4.0);
    (x, x.map(|it| 3.0 * it - 1.0))
}

fn weight(trainer: &Trainer, name: &str) -> f32 {
    let mut number = [0f32];
    trainer.weight(name, &mut number).unwrap();
    number[0]
}

/// One step of these samples; the loss before it.
fn step(trainer: &mut Trainer, x: &[f32], t: &[f32], by: &Optimizer) -> Result<f32, Error> {
    let mut loss = [0f32];
    let inputs = [Input::new(x, &[8])?, Input::new(t, &[8])?];
    trainer.run(&inputs, &mut [Output::new(&mut loss)])?.backward()?.step(by)?;
    Ok(loss[0])
}

/// $RNNCC_TRAINED_NUMBERS: what Python's trainer has found of the same steps, f32 in this machine's order.
#[test]
fn steps_are_those_of_python_bit_for_bit() {
    let bytes = std::fs::read(std::env::var("RNNCC_TRAINED_NUMBERS").unwrap()).unwrap();
    let due: Vec<u32> = bytes.chunks_exact(4).map(|it| u32::from_ne_bytes([it[0], it[1], it[2], it[3]])).collect();
    let rules = [
        Optimizer { momentum: 0.9, nesterov: true, weight_decay: 0.01, ..Optimizer::new(Rule::Sgd, 0.05) },
        Optimizer { betas: (0.8, 0.99), epsilon: 1e-6, max_norm: 0.5, ..Optimizer::new(Rule::Adam, 0.1) },
        Optimizer::new(Rule::AdamW, 0.1),
    ];
    let ((x, t), mut found) = (samples(), Vec::new());
    for rule in rules {
        let mut trainer = module("RNNCC_TRAINED_MODULE").trainer().unwrap();
        found.extend((0..40).map(|_| step(&mut trainer, &x, &t, &rule).unwrap().to_bits()));
        found.extend(["w", "b"].map(|name| weight(&trainer, name).to_bits()));
    }
    assert_eq!(found, due);
}

#[test]
fn a_network_is_trained() {
    let model = module("RNNCC_TRAINED_MODULE");
    let names: Vec<String> = model.library().trained().into_iter().map(|it| it.name).collect();
    assert_eq!((names, model.library().loss()), (vec!["w".to_string(), "b".to_string()], Some(0)));
    assert!(model.library().statistics().is_empty() && model.library().output_gradients().is_empty());
    let ((x, t), mut trainer) = (samples(), model.trainer().unwrap());
    let (mut loss, mut of_w) = ([0f32], [0f32]);
    let inputs = [Input::new(&x, &[8]).unwrap(), Input::new(&t, &[8]).unwrap()];
    let mut gradients = trainer.run(&inputs, &mut [Output::new(&mut loss)]).unwrap().backward().unwrap();
    gradients.get("w", &mut of_w).unwrap();
    let mean = |each: fn(f32, f32) -> f32| x.iter().zip(&t).map(|(&x, &t)| each(x, t)).sum::<f32>() / 8.0;
    let (due_w, due_b) = (mean(|x, t| -2.0 * t * x), mean(|_, t| -2.0 * t)); // where w and b are 0
    assert!((of_w[0] - due_w).abs() < 1e-5 && (loss[0] - mean(|_, t| t * t)).abs() < 1e-5);
    assert!((gradients.norm().unwrap() - f64::from(due_w.hypot(due_b))).abs() < 1e-5);
    gradients.step(&Optimizer::new(Rule::Adam, 0.1)).unwrap();
    assert!((weight(&trainer, "w") - 0.1).abs() < 1e-5); // Adam's first step is the rate, against the gradient's sign
    trainer.reset_optimizer();
    trainer.seed(7).unwrap(); // it draws nothing
    for _ in 0..300 {
        step(&mut trainer, &x, &t, &Optimizer::new(Rule::Adam, 0.1)).unwrap();
    }
    let other = model.trainer().unwrap(); // weights are the model's
    assert!((weight(&other, "w") - 3.0).abs() < 0.1 && (weight(&other, "b") + 1.0).abs() < 0.1);
}

/// A trainer has them from its context.
#[test]
fn shapes_and_states_are_those_of_a_context() {
    let mut trainer = module("RNNCC_TRAINED_MODULE").trainer().unwrap();
    trainer.warmup().unwrap();
    assert_eq!(trainer.output_shapes(&[]).unwrap(), vec![vec![0i64; 0]]);
    let words = "no state h; there are: ";
    let none = [trainer.state_get("h", None, &mut [0f32]), trainer.state_set("h", Some(0), &[0f32])];
    assert!(none.into_iter().all(|it| it.unwrap_err().words == words));
    trainer.state_reset(None).unwrap();
}

#[test]
fn what_is_refused_leaves_the_weights() {
    let ((x, t), mut trainer) = (samples(), module("RNNCC_TRAINED_MODULE").trainer().unwrap());
    trainer.set_weight("w", &[2.0]).unwrap();
    let refused = |result: Result<(), Error>| result.map_err(|it| (it.status, it.words)).unwrap_err();
    let no_weight = "v: no such weight or running statistic".to_string();
    assert_eq!(refused(trainer.weight("v", &mut [0.0])), (Status::Argument, no_weight));
    let size = (Status::Size, "w: expected 1 numbers, found 2".to_string());
    assert_eq!((refused(trainer.weight("w", &mut [0.0; 2])), refused(trainer.set_weight("w", &[1.0, 2.0]))), (size.clone(), size));
    assert_eq!(refused(trainer.set_weight("w\0", &[1.0])).0, Status::Argument);
    let mut bad = x;
    bad[3] = f32::NAN;
    let words = "step: the gradient of 'w' has a number that is not finite; the weights are as before";
    let adam = Optimizer::new(Rule::Adam, 0.1);
    assert_eq!(refused(step(&mut trainer, &bad, &t, &adam).map(drop)), (Status::Value, words.to_string()));
    let negative = Optimizer::new(Rule::Sgd, -1.0);
    assert_eq!(refused(step(&mut trainer, &x, &t, &negative).map(drop)).0, Status::Argument);
    assert_eq!(refused(step(&mut trainer, &x[..4], &t, &adam).map(drop)).0, Status::Shape);

    // Another trainer's step, between a run and its way back, makes that refuse.
    let (model, mut loss) = (trainer.model().clone(), [0f32]);
    let inputs = [Input::new(&x, &[8]).unwrap(), Input::new(&t, &[8]).unwrap()];
    let run = trainer.run(&inputs, &mut [Output::new(&mut loss)]).unwrap();
    model.trainer().unwrap().set_weight("b", &[1.0]).unwrap();
    let (status, words) = refused(run.backward().map(drop));
    assert!(status == Status::Argument && words.contains("weights have changed since the run()"), "{}", words);
    assert_eq!((weight(&trainer, "w"), weight(&trainer, "b")), (2.0, 1.0));
    let refused = module("RNNCC_MUTABLE_MODULE").trainer().map(drop).unwrap_err();
    assert_eq!(refused.status, Status::Unsupported);
}

#[test]
fn a_loss_may_be_outside() {
    let model = module("RNNCC_OUTER_MODULE");
    let library = model.library();
    assert_eq!((library.output_gradients(), library.input_gradients(), library.loss()), (vec![0], vec![0], None));
    let ((x, t), mut trainer) = (samples(), model.trainer().unwrap());
    trainer.set_weight("w", &[2.0]).unwrap();
    let (mut y, mut found, mut of_w) = ([0f32; 8], [0f32; 8], [0f32]);
    let inputs = [Input::new(&x, &[8]).unwrap()];
    let run = trainer.run(&inputs, &mut [Output::new(&mut y)]).unwrap();
    let mut given = [0f32; 8];
    given.iter_mut().zip(y.iter().zip(&t)).for_each(|(d, (y, t))| *d = y - t);
    let gradients = [Input::new(&given, &[8]).unwrap()];
    run.backward_from(&gradients, &mut [Output::new(&mut found)]).unwrap().get("w", &mut of_w).unwrap();
    assert_eq!(found, given.map(|it| 2.0 * it));
    let due: f32 = given.iter().zip(&x).map(|(d, x)| d * x).sum();
    assert!((of_w[0] - due).abs() < 1e-5);
    let run = trainer.run(&inputs, &mut [Output::new(&mut y)]).unwrap();
    let short = [Input::new(&given[..7], &[7]).unwrap()];
    assert_eq!(run.backward_from(&short, &mut [Output::new(&mut found)]).map(drop).unwrap_err().status, Status::Shape);
    assert_eq!(trainer.run(&inputs, &mut [Output::new(&mut y)]).unwrap().backward().map(drop).unwrap_err().status, Status::Argument);
}

/// What a checkpoint has: w, b, and what Adam keeps. Gradients that are kept add up.
#[test]
fn a_training_goes_on_from_a_checkpoint() {
    let ((x, t), adam) = (samples(), Optimizer::new(Rule::Adam, 0.1));
    let losses = |trainer: &mut Trainer| -> Vec<u32> { (0..4).map(|_| step(trainer, &x, &t, &adam).unwrap().to_bits()).collect() };
    let mut whole = module("RNNCC_TRAINED_MODULE").trainer().unwrap();
    losses(&mut whole);
    let checkpoint = whole.checkpoint().unwrap();
    let due = losses(&mut whole);
    let mut resumed = module("RNNCC_TRAINED_MODULE").trainer().unwrap();
    resumed.restore(&checkpoint).unwrap();
    assert_eq!(losses(&mut resumed), due);
    assert_eq!(resumed.checkpoint().unwrap(), whole.checkpoint().unwrap());

    assert_eq!(resumed.restore(&checkpoint[1..]).unwrap_err().status, Status::Argument);
    assert_eq!(resumed.restore(&checkpoint[..9]).unwrap_err().status, Status::Size);
    let mut damaged = checkpoint.clone();
    damaged[60] ^= 1;
    assert_eq!(resumed.restore(&damaged).unwrap_err().status, Status::Value);
    let sgd = Optimizer { momentum: 0.9, ..Optimizer::new(Rule::Sgd, 0.1) };
    let words = step(&mut resumed, &x, &t, &sgd).unwrap_err().words;
    assert!(words.starts_with("step: expected the rule adam"), "{}", words);
}

#[test]
fn gradients_of_parts_add_up() {
    let ((x, t), mut trainer, mut loss) = (samples(), module("RNNCC_TRAINED_MODULE").trainer().unwrap(), [0f32]);
    let inputs = [Input::new(&x, &[8]).unwrap(), Input::new(&t, &[8]).unwrap()];
    let mut gradient = |trainer: &mut Trainer, keep: bool| {
        let mut of_w = [0f32];
        let mut gradients = trainer.run(&inputs, &mut [Output::new(&mut loss)]).unwrap().backward().unwrap();
        gradients.get("w", &mut of_w).unwrap();
        if keep {
            gradients.keep().unwrap();
        }
        of_w[0]
    };
    let alone = gradient(&mut trainer, true);
    assert_eq!((gradient(&mut trainer, false), gradient(&mut trainer, false)), (2.0 * alone, 2.0 * alone));
    trainer.drop_gradients().unwrap();
    assert_eq!(gradient(&mut trainer, false), alone);
}

#[test]
fn a_weight_may_be_frozen() {
    let ((x, t), mut trainer) = (samples(), module("RNNCC_TRAINED_MODULE").trainer().unwrap());
    trainer.weight_factors("w", 0.0, 1.0).unwrap();
    assert_eq!(trainer.weight_factors("w", -1.0, 1.0).unwrap_err().status, Status::Argument);
    step(&mut trainer, &x, &t, &Optimizer::new(Rule::Adam, 0.1)).unwrap();
    assert!(weight(&trainer, "w") == 0.0 && weight(&trainer, "b") != 0.0);
}

#[test]
fn weights_are_set_together() {
    let trainer = module("RNNCC_TRAINED_MODULE").trainer().unwrap();
    trainer.set_weights(&[Weight::new("w", &[3f32]).unwrap(), Weight::new("b", &[4f32]).unwrap()]).unwrap();
    let unknown = trainer.set_weights(&[Weight::new("w", &[5f32]).unwrap(), Weight::new("v", &[6f32]).unwrap()]);
    assert_eq!(unknown.unwrap_err().words, "no weight `v` is trained, or its data is NULL");
    assert_eq!((weight(&trainer, "w"), weight(&trainer, "b")), (3.0, 4.0));
}

/// Another thread sets a weight while a run computes, and does not wait for it: the run has the weight from before.
#[test]
fn a_run_ends_with_the_weights_that_it_began_with() {
    let setter = Arc::new(Mutex::new(None::<Trainer>));
    let shared = setter.clone();
    let executor: Executor = Arc::new(move |n, body| {
        if let Some(trainer) = shared.lock().unwrap().take() {
            std::thread::spawn(move || trainer.set_weight("w", &[5.0]).unwrap()).join().unwrap();
        }
        (0..n).for_each(body);
    });
    let options = Options { threads: 2, share_all: true, executor: Some(executor), ..Default::default() };
    let model = module("RNNCC_OUTER_MODULE").library().model(options).unwrap();
    *setter.lock().unwrap() = Some(model.trainer().unwrap());
    let ((x, _), mut y) = (samples(), [1f32; 8]);
    let mut context = model.context().unwrap();
    context.run(&[Input::new(&x, &[8]).unwrap()], &mut [Output::new(&mut y)]).unwrap();
    assert!(setter.lock().unwrap().is_none(), "the executor was called");
    assert_eq!(y, [0.0; 8]);
    context.run(&[Input::new(&x, &[8]).unwrap()], &mut [Output::new(&mut y)]).unwrap();
    assert_eq!(y, x.map(|it| 5.0 * it));
}
