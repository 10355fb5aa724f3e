// SPDX-License-Identifier: MIT
//! The crate on the module of tests/unit/runtime_fake.h, whose file $RNNCC_FAKE_MODULE names.
use rnncc::{Context, Error, Executor, Input, Library, Model, Options, Output, Status, Weight};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::Arc;

const T: usize = 5;
const B: usize = 2;
const F: usize = 3;

fn path() -> String {
    std::env::var("RNNCC_FAKE_MODULE").expect("RNNCC_FAKE_MODULE")
}

fn library() -> Library {
    unsafe { Library::load(&path()) }.unwrap()
}

fn model() -> Model {
    library().model(Options { threads: 2, ..Default::default() }).unwrap()
}

fn step(context: &mut Context, scale: f32) -> Result<Vec<f32>, Error> {
    let x: Vec<f32> = (0..T * B * F).map(|i| (i % 7) as f32).collect();
    let (lengths, scale) = ([T as i64; B], [scale]);
    let (mut y, mut last) = (vec![0f32; T * B * F], vec![0f32; B * F]);
    let inputs = [
        Input::new(&x, &[T as i64, B as i64, F as i64])?,
        Input::new(&lengths, &[B as i64])?,
        Input::new(&scale, &[])?,
    ];
    let mut outputs = [Output::new(&mut y), Output::new(&mut last)];
    context.run(&inputs, &mut outputs)?;
    assert_eq!(outputs[0].shape(), [T as i64, B as i64, F as i64]);
    assert_eq!(outputs[1].shape(), [B as i64, F as i64]);
    Ok(y)
}

#[test]
fn the_interface_is_read() {
    let library = library();
    let names: Vec<String> = library.inputs().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["x", "lengths", "scale"]);
    assert_eq!(library.outputs()[0].max_shape, [16, 4, 3]);
    assert_eq!((library.dims()[0].name.as_str(), library.dims()[0].max, library.dims()[0].multiple), ("T", 16, 1));
    assert_eq!((library.name(), library.networks().len()), ("fake".to_string(), 1));
    assert_eq!(library.stack(), None, "rnncc did not build it");
}

#[test]
fn states_are_each_streams_own() {
    let model = model();
    let beside = model.library().model(Options { pool_of: Some(model.clone()), ..Default::default() }).unwrap();
    let (mut first, mut second) = (model.context().unwrap(), beside.context().unwrap());
    let (fresh, later) = (step(&mut first, 2.0).unwrap(), step(&mut first, 2.0).unwrap());
    assert_ne!(fresh, later);
    assert_eq!(step(&mut second, 2.0).unwrap(), fresh);
    let mut runs = [0i64];
    first.state_get("runs", None, &mut runs).unwrap();
    assert_eq!(runs, [2]);
    let mut h = [0f32; 2 * 4 * F];
    second.state_get("h", None, &mut h).unwrap();
    first.state_reset(None).unwrap();
    assert_eq!(step(&mut first, 2.0).unwrap(), fresh);
    first.state_set("h", None, &h).unwrap();
    assert_eq!(step(&mut first, 2.0).unwrap(), later);
}

#[test]
fn errors_have_words() {
    let words = |result: Result<(), Error>| result.map_err(|it| (it.status, it.words)).unwrap_err();
    assert!(unsafe { Library::load("/nowhere.so") }.is_err());
    let (status, text) = words(unsafe { Library::load("Cargo.toml") }.map(|_| ()));
    assert!(status == Status::Argument && text.contains("cannot load module"), "{}", text);
    let mut context = model().context().unwrap();
    let (status, text) = words(context.run(&[], &mut []));
    assert_eq!((status, text.as_str()), (Status::Argument, "0 inputs given, the model has 3"));
    let (status, text) = words(context.output_shapes(&[99, 1]).map(|_| ()));
    assert_eq!((status, text.as_str()), (Status::Bound, "'T' is 99, but was compiled for 0 to 16"));
    assert_eq!(words(context.state_get("runs", None, &mut [0f32])).0, Status::Dtype);
    assert_eq!(words(context.state_get("c", None, &mut [0f32])).1, "no state c; there are: h, runs");
    assert_eq!(words(Input::new(&[1f32, 2.0], &[3]).map(|_| ())).0, Status::Shape);
    let (_, text) = words(library().network("other").map(|_| ()));
    assert_eq!(text, "the module has no network other; it has fake");
}

/// Why a file of these bytes is no module.
fn refused_bytes(bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("rnncc-damaged-{}.so", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let refused = unsafe { Library::load(path.to_str().unwrap()) }.map(|_| ()).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    refused.words
}

#[test]
fn a_damaged_file_is_refused() {
    let whole = std::fs::read(path()).unwrap();
    assert!(refused_bytes(&whole[..2000]).contains("cut short: expected at least"));
    let mut far = whole;
    far[32..40].fill(0xff); // where its segments are
    far[54..56].fill(0); // how long each of their rows is
    assert!(refused_bytes(&far).contains("cannot load module"));
    let folder = unsafe { Library::load("src") }.map(|_| ()).unwrap_err();
    assert_eq!(folder.words, "./src: expected a file, found a folder, a pipe or a device");
}

#[test]
fn contexts_move_between_threads() {
    let model = model();
    let expected = step(&mut model.context().unwrap(), 3.0).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut context = model.context().unwrap();
            std::thread::spawn(move || step(&mut context, 3.0).unwrap())
        })
        .collect();
    drop(model);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}

#[test]
fn modules_share_a_pool() {
    let expected = step(&mut model().context().unwrap(), 3.0).unwrap();
    let second = unsafe { Library::load(&std::env::var("RNNCC_SECOND_MODULE").unwrap()) }.unwrap();
    let greeted = AtomicI32::new(0);
    let pool = library()
        .pool_with(Options { threads: 3, ..Default::default() }, &|worker| {
            greeted.fetch_add(worker, Ordering::Relaxed);
        })
        .unwrap();
    assert_eq!((pool.threads(), pool.waiting(), greeted.into_inner()), (3, 0, 1 + 2));
    let on = |library: &Library, waits, priority| {
        library.model(Options { pool: Some(pool.clone()), share_all: true, waits, priority, ..Default::default() }).unwrap()
    };
    let models = [on(&second, true, 5), on(&library(), false, 0), on(&second, false, 0), on(&library(), true, -5)];
    drop((pool, second));
    let run = |model: Model, expected: Vec<f32>| {
        assert_eq!(model.threads(), 3);
        for _ in 0..200 {
            assert_eq!(step(&mut model.context().unwrap(), 3.0).unwrap(), expected);
        }
    };
    let threads: Vec<_> = IntoIterator::into_iter(models)
        .map(|model| {
            let expected = expected.clone();
            std::thread::spawn(move || run(model, expected))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn by_threads(n: usize, body: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for index in 0..n {
            scope.spawn(move || body(index));
        }
    });
}

/// In any order, on any threads; the module's run has 2 T + 1 barriers.
#[test]
fn an_executor_runs_the_steps() {
    let expected = step(&mut model().context().unwrap(), 3.0).unwrap();
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = |run: fn(usize, &(dyn Fn(usize) + Sync))| -> Executor {
        let steps = steps.clone();
        Arc::new(move |n, body| {
            steps.fetch_add(1, Ordering::Relaxed);
            run(n, body)
        })
    };
    for executor in [counted(by_threads), counted(|n, body| (0..n).for_each(body)), counted(|n, body| (0..n).rev().for_each(body))] {
        steps.store(0, Ordering::Relaxed);
        let options = Options { threads: 4, share_all: true, executor: Some(executor), ..Default::default() };
        let model = library().model(options.clone()).unwrap();
        assert_eq!(step(&mut model.context().unwrap(), 3.0).unwrap(), expected);
        assert_eq!(steps.load(Ordering::Relaxed), 2 * T + 2);
        let pool = library().pool(options).unwrap();
        let model = library().model(Options { pool: Some(pool), share_all: true, ..Default::default() }).unwrap();
        assert_eq!(step(&mut model.context().unwrap(), 3.0).unwrap(), expected);
        assert_eq!(steps.load(Ordering::Relaxed), 2 * (2 * T + 2));
    }
}

#[test]
fn a_module_of_before_pools_says_so() {
    let older = unsafe { Library::load(&std::env::var("RNNCC_OLDER_MODULE").unwrap()) }.unwrap();
    let refused = older.pool(Options::default()).map(|_| ()).unwrap_err();
    assert_eq!((refused.status, refused.words.as_str()), (Status::Unsupported, "fake: compiled by an rnncc of before pools"));
    let pool = library().pool(Options::default()).unwrap();
    let refused = older.model(Options { pool: Some(pool), ..Default::default() }).map(|_| ()).unwrap_err();
    assert_eq!(refused.status, Status::Unsupported);
}

#[test]
fn shapes_are_known_before_a_run() {
    let shapes = model().context().unwrap().output_shapes(&[7, 2]).unwrap();
    assert_eq!(shapes, [vec![7, 2, 3], vec![2, 3]]);
}

#[test]
fn weights_are_set_while_the_model_lives() {
    let path = std::env::var("RNNCC_MUTABLE_MODULE").expect("RNNCC_MUTABLE_MODULE");
    let model = unsafe { Library::load(&path) }.unwrap().model(Options { threads: 2, ..Default::default() }).unwrap();
    let names: Vec<String> = model.library().weights().into_iter().map(|it| it.name).collect();
    assert!(names.contains(&"output.bias".to_string()), "{:?}", names);
    let mut bias = [0f32; 10];
    model.get("output.bias", &mut bias).unwrap();
    let other = bias.map(|it| it + 1.0);
    model.set(&[Weight::new("output.bias", &other).unwrap()]).unwrap();
    model.get("output.bias", &mut bias).unwrap();
    assert_eq!(bias, other);
    let wrong = model.set(&[Weight::new("output.bias", &other[1..]).unwrap()]).unwrap_err();
    assert_eq!(wrong.to_string(), "weight `output.bias`: expected 40 bytes, found 36");
    assert_eq!(model.get("output.bias", &mut [0i32; 10]).unwrap_err().status, Status::Dtype);
    let constant = library().model(Options::default()).unwrap();
    assert_eq!(constant.set(&[Weight::new("w", &other).unwrap()]).unwrap_err().status, Status::Unsupported);
    assert!(constant.library().weights().is_empty());
}
