// SPDX-License-Identifier: MIT
//
// Modules from C++17: what rnncc.h has, with lifetimes and errors in C++'s manner. Header only.
//
//     rnncc::library digits("digits_rnn.so");           // or digits(digits_rnn_module_query) of a static library
//     rnncc::context context{rnncc::model(digits)};
//     context.run({rnncc::input(image.data(), {1, 8, 8})}, {rnncc::output(probability.data(), probability.size())});
//
// Every object holds what it was made of: the library is unloaded after the last model, a model ends after its last
// context. A function that fails throws rnncc::error; run() and what is noexcept allocate nothing.
//
// A library and a model may be used by several threads. A context is used by one thread at a time.
#ifndef RNNCC_HPP
#define RNNCC_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rnncc_loader.h"

namespace rnncc {

class error : public std::runtime_error {
public:
  error(rnncc_status status, const std::string &what) : std::runtime_error(what), status_(status) {}
  rnncc_status status() const noexcept { return status_; }

private:
  rnncc_status status_;
};

using shape = std::vector<std::int64_t>;

// Types of C++ for the module's. half and bfloat16 are for their bits.
enum class half : std::uint16_t {};
enum class bfloat16 : std::uint16_t {};

template <class T> struct dtype_of;
template <> struct dtype_of<float> : std::integral_constant<rnncc_dtype, RNNCC_F32> {};
template <> struct dtype_of<double> : std::integral_constant<rnncc_dtype, RNNCC_F64> {};
template <> struct dtype_of<half> : std::integral_constant<rnncc_dtype, RNNCC_F16> {};
template <> struct dtype_of<bfloat16> : std::integral_constant<rnncc_dtype, RNNCC_BF16> {};
template <> struct dtype_of<bool> : std::integral_constant<rnncc_dtype, RNNCC_BOOL> {};
template <> struct dtype_of<std::int8_t> : std::integral_constant<rnncc_dtype, RNNCC_I8> {};
template <> struct dtype_of<std::int16_t> : std::integral_constant<rnncc_dtype, RNNCC_I16> {};
template <> struct dtype_of<std::int32_t> : std::integral_constant<rnncc_dtype, RNNCC_I32> {};
template <> struct dtype_of<std::int64_t> : std::integral_constant<rnncc_dtype, RNNCC_I64> {};
template <> struct dtype_of<std::uint8_t> : std::integral_constant<rnncc_dtype, RNNCC_U8> {};
template <> struct dtype_of<std::uint16_t> : std::integral_constant<rnncc_dtype, RNNCC_U16> {};
template <> struct dtype_of<std::uint32_t> : std::integral_constant<rnncc_dtype, RNNCC_U32> {};
template <> struct dtype_of<std::uint64_t> : std::integral_constant<rnncc_dtype, RNNCC_U64> {};

// A tensor that only refers to the caller's data, of the extents given, row-major.
template <class T> rnncc_tensor input(const T *data, std::initializer_list<std::int64_t> extents) {
  rnncc_tensor tensor{};
  if (extents.size() > RNNCC_MAX_RANK) throw error(RNNCC_ERROR_SHAPE, "input: rank above 8");
  tensor.struct_size = sizeof tensor;
  tensor.dtype = dtype_of<T>::value;
  tensor.data = const_cast<T *>(data); // rnncc.h: inputs are only read
  tensor.bytes = sizeof(T);
  for (std::int64_t extent : extents) {
    tensor.bytes *= static_cast<std::size_t>(extent);
    tensor.shape[tensor.rank++] = extent;
  }
  return tensor;
}

// A buffer for `count` elements at most. run() sets rank and shape.
template <class T> rnncc_tensor output(T *data, std::size_t count) {
  rnncc_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = dtype_of<T>::value;
  tensor.data = data;
  tensor.bytes = count * sizeof(T);
  return tensor;
}

// A compiled module, or one network of it.
class library {
public:
  // Loads the file. Without a slash in it, from the current folder.
  explicit library(const std::string &path) {
    char why[512];
    rnncc_library loaded{};
    rnncc_status status = rnncc_load(path.c_str(), &loaded, why, sizeof why);
    if (status != RNNCC_OK) throw error(status, why);
    api_ = loaded.api;
    loaded_ = std::shared_ptr<void>(loaded.handle, [](void *handle) {
      rnncc_library it{handle, nullptr};
      rnncc_unload(&it);
    });
  }

  // One that is linked: NAME_module_query of its header.
  explicit library(rnncc_module_query_fn query) {
    const char *why = nullptr;
    api_ = query(RNNCC_ABI, &why);
    if (!api_) throw error(RNNCC_ERROR_UNSUPPORTED, why ? why : "the module cannot run here");
  }

  // The network of that name, of a module with several.
  library network(const std::string &name) const {
    char why[512];
    library other(*this);
    other.api_ = rnncc_network(api_, name.c_str(), why, sizeof why);
    if (!other.api_) throw error(RNNCC_ERROR_ARGUMENT, why);
    return other;
  }

  const rnncc_info &info() const noexcept { return *api_->info; }
  const rnncc_api &api() const noexcept { return *api_; }

  // Places by name, in the order of run()'s tensors.
  int input(const std::string &name) const { return place(rnncc_input_at, info().n_inputs, "input", name); }
  int output(const std::string &name) const { return place(rnncc_output_at, info().n_outputs, "output", name); }
  int state(const std::string &name) const { return place(state_tensor, info().n_states, "state", name); }

private:
  static const rnncc_tensor_info *state_tensor(const rnncc_info *info, std::int32_t index) {
    return rnncc_state_at(info, index)->tensor;
  }

  int place(const rnncc_tensor_info *(*at)(const rnncc_info *, std::int32_t), std::int32_t count, const char *kind,
            const std::string &name) const {
    std::string there;
    for (std::int32_t i = 0; i < count; i++) {
      if (name == at(&info(), i)->name) return i;
      there += (i ? ", " : "") + std::string(at(&info(), i)->name);
    }
    throw error(RNNCC_ERROR_ARGUMENT, std::string(info().name) + " has no " + kind + " " + name +
                                          (count ? "; it has " + there : "; it has none"));
  }

  std::shared_ptr<void> loaded_; // empty: linked
  const rnncc_api *api_ = nullptr;
};

// Numbers of a weight, for model::set().
template <class T> rnncc_weight weight(const char *name, const T *data, std::size_t count) {
  rnncc_weight result{};
  result.struct_size = sizeof result;
  result.dtype = dtype_of<T>::value;
  result.name = name;
  result.data = data;
  result.bytes = count * sizeof(T);
  return result;
}

// The options with their defaults.
inline rnncc_options options(int threads = 0) {
  rnncc_options result{};
  result.struct_size = sizeof result;
  result.threads = threads;
  return result;
}

// Threads that models share, those of other libraries, too. A copy is the same pool.
class pool {
public:
  // `with`: threads, bind_threads, steer_threads, parallel_for, host, by_steps, thread_start. The threads run the
  // library's code, which the pool holds.
  explicit pool(const library &of, const rnncc_options &with = options()) {
    const char *why = nullptr;
    rnncc_pool *made = nullptr;
    require_pools(of);
    rnncc_status status = of.api().pool_create(&with, &made, &why);
    if (status != RNNCC_OK) throw error(status, why ? why : "pool_create");
    pool_ = std::shared_ptr<rnncc_pool>(made, [of](rnncc_pool *it) { of.api().pool_destroy(it); });
  }

  int threads() const noexcept { return pool_->threads; }
  int waiting() const noexcept { return pool_->waiting(pool_.get()); } // runs, for the threads
  rnncc_pool *get() const noexcept { return pool_.get(); }

  static void require_pools(const library &of) {
    if (!RNNCC_HAS(&of.api(), pool_destroy))
      throw error(RNNCC_ERROR_UNSUPPORTED, std::string(of.info().name) + ": compiled by an rnncc of before pools");
  }

private:
  friend class model;
  std::shared_ptr<rnncc_pool> pool_;
};

// Weights and workers. A copy is the same model.
class model {
public:
  explicit model(const library &of, const rnncc_options &with = options()) : model(of, with, nullptr) {}

  // One that shares the workers of `other`, of the same module.
  model(const library &of, const model &other) : model(of, sharing(other), other.model_) {}

  // One on the pool's threads. `with`: waits, priority, share_all.
  model(const library &of, const pool &on, const rnncc_options &with = options())
      : model(of, sharing(of, on, with), on.pool_) {}

  int threads() const noexcept { return library_.api().model_threads(model_.get()); }
  const library &of() const noexcept { return library_; }

  // Of a module of --weights=mutable: sets these weights at once, while contexts run. See weights_set of rnncc.h.
  void set(const rnncc_weight *weights, std::size_t n) const {
    char why[1024] = "";
    require_weights();
    rnncc_status status = library_.api().weights_set(model_.get(), weights, n, why, sizeof why);
    if (status != RNNCC_OK) throw error(status, why);
  }
  void set(std::initializer_list<rnncc_weight> weights) const { set(weights.begin(), weights.size()); }

  // Copies a weight; `count` is that of its elements, T their type.
  template <class T> void get(const char *name, T *data, std::size_t count) const {
    char why[1024] = "";
    require_weights();
    require_type(name, dtype_of<T>::value);
    rnncc_status status = library_.api().weights_get(model_.get(), name, data, count * sizeof(T), why, sizeof why);
    if (status != RNNCC_OK) throw error(status, why);
  }

  rnncc_model *get() const noexcept { return model_.get(); }

private:
  // workers: the model or pool whose workers it has.
  model(const library &of, const rnncc_options &with, const std::shared_ptr<const void> &workers) : library_(of) {
    const char *why = nullptr;
    rnncc_model *made = nullptr;
    rnncc_status status = of.api().model_create(&with, &made, &why);
    if (status != RNNCC_OK) throw error(status, why ? why : "model_create");
    // Library and workers outlive the model, also where another is assigned to it.
    model_ = std::shared_ptr<rnncc_model>(made, [of, workers](rnncc_model *it) { of.api().model_destroy(it); });
  }

  void require_weights() const {
    if (!RNNCC_HAS(&library_.api(), weights_get))
      throw error(RNNCC_ERROR_UNSUPPORTED, std::string(library_.info().name) + ": its weights are constant");
  }
  // The module itself knows only the bytes, and says what is wrong with a name.
  void require_type(const char *name, rnncc_dtype dtype) const {
    const rnncc_info &info = library_.info();
    for (std::int32_t i = 0; name && i < info.n_weights; i++) {
      const rnncc_tensor_info *it = rnncc_weight_at(&info, i);
      if (!std::strcmp(it->name, name) && it->dtype != dtype)
        throw error(RNNCC_ERROR_DTYPE, std::string("weight ") + name + ": expected element type " +
                                           std::to_string(static_cast<int>(it->dtype)) + " of rnncc_dtype, found " +
                                           std::to_string(static_cast<int>(dtype)));
    }
  }
  static rnncc_options sharing(const model &other) {
    rnncc_options with = options();
    with.pool_of = other.get();
    return with;
  }
  static rnncc_options sharing(const library &of, const pool &on, rnncc_options with) {
    pool::require_pools(of);
    with.pool = on.get();
    return with;
  }

  library library_;
  std::shared_ptr<rnncc_model> model_;
};

struct profile_line {
  std::string kernel, node;
  std::uint64_t calls, nanoseconds;
  double flops, bytes;           // of one call at the dimensions' optimum
  double flops_done, bytes_done; // of all these calls, at the extents that the runs had
};

// One stream of runs, with its states. It can be moved, not copied.
class context {
public:
  explicit context(const model &of) : model_(of) {
    const char *why = nullptr;
    rnncc_context *made = nullptr;
    rnncc_status status = api().context_create(of.get(), nullptr, 0, &made, &why);
    if (status != RNNCC_OK) throw error(status, why ? why : "context_create");
    context_ = {made, Destroy{model_}};
  }

  // The first run is then as fast as the next.
  void warmup() { check(api().warmup(context_.get())); }

  // Throws with outputs and states untouched. Outputs get their ranks and shapes.
  void run(const rnncc_tensor *inputs, std::size_t n_inputs, rnncc_tensor *outputs, std::size_t n_outputs) {
    check(api().run(context_.get(), inputs, n_inputs, outputs, n_outputs));
  }
  // Of lists in place, whose outputs' shapes nobody sees.
  void run(std::initializer_list<rnncc_tensor> inputs, std::initializer_list<rnncc_tensor> outputs) {
    rnncc_tensor own[MOST];
    if (outputs.size() > MOST) throw error(RNNCC_ERROR_ARGUMENT, "run: a list of more than 16 outputs; use arrays");
    if (outputs.size()) std::memcpy(own, outputs.begin(), outputs.size() * sizeof *own);
    run(inputs.begin(), inputs.size(), own, outputs.size());
  }
  template <class Inputs, class Outputs> void run(const Inputs &inputs, Outputs &outputs) {
    run(std::data(inputs), std::size(inputs), std::data(outputs), std::size(outputs));
  }

  // Of a run with these extents of the dims, in the order of info(): the most where they depend on the data.
  std::vector<shape> output_shapes(const std::vector<std::int64_t> &dims) {
    const rnncc_info &info = model_.of().info();
    std::vector<std::int64_t> extents(static_cast<std::size_t>(info.n_outputs) * RNNCC_MAX_RANK);
    auto *shapes = reinterpret_cast<std::int64_t(*)[RNNCC_MAX_RANK]>(extents.data());
    check(api().output_shapes(context_.get(), dims.data(), dims.size(), shapes,
                              static_cast<std::size_t>(info.n_outputs)));
    std::vector<shape> result;
    for (std::int32_t i = 0; i < info.n_outputs; i++)
      result.emplace_back(shapes[i], shapes[i] + rnncc_output_at(&info, i)->rank);
    return result;
  }

  // slot: -1 for all. `data` has exactly the elements of that.
  void state_reset(int slot = -1) { check(api().state_reset(context_.get(), slot)); }
  template <class T> void state_get(const std::string &name, std::vector<T> &data, int slot = -1) {
    check(api().state_get(context_.get(), state<T>(name), slot, data.data(), data.size() * sizeof(T)));
  }
  template <class T> void state_set(const std::string &name, const std::vector<T> &data, int slot = -1) {
    check(api().state_set(context_.get(), state<T>(name), slot, data.data(), data.size() * sizeof(T)));
  }

  void profile_begin() { check(api().profile(context_.get(), 1, nullptr, nullptr)); }
  std::vector<profile_line> profile_end() {
    const rnncc_profile_entry *entries = nullptr;
    std::size_t count = 0;
    check(api().profile(context_.get(), 0, &entries, &count));
    std::vector<profile_line> lines;
    for (std::size_t i = 0; i < count; i++) {
      const rnncc_profile_entry *it = rnncc_profile_at(entries, i);
      bool counted = RNNCC_HAS(it, bytes_done); // else a module that is older than these fields
      double calls = static_cast<double>(it->calls);
      lines.push_back({it->kernel, it->node, it->calls, it->nanoseconds, it->flops, it->bytes,
                       counted ? it->flops_done : it->flops * calls, counted ? it->bytes_done : it->bytes * calls});
    }
    return lines;
  }

  const model &of() const noexcept { return model_; }
  rnncc_context *get() const noexcept { return context_.get(); }

protected:
  void check(rnncc_status status) const {
    if (status == RNNCC_OK) return;
    std::string why = api().last_error(context_.get());
    throw error(status, why.empty() ? rnncc_status_name(status) : why);
  }

private:
  enum { MOST = 16 };

  struct Destroy {
    model of; // outlives the context
    void operator()(rnncc_context *it) const { of.of().api().context_destroy(it); }
  };

  const rnncc_api &api() const noexcept { return model_.of().api(); }

  template <class T> int state(const std::string &name) const {
    int index = model_.of().state(name);
    if (rnncc_state_at(&model_.of().info(), index)->tensor->dtype != dtype_of<T>::value)
      throw error(RNNCC_ERROR_DTYPE, "state " + name + " has another type of element");
    return index;
  }

  model model_;
  std::unique_ptr<rnncc_context, Destroy> context_{nullptr, Destroy{model_}};
};

// How a step changes weights, with PyTorch's defaults; its other fields may be set.
inline rnncc_optimizer optimizer(rnncc_rule rule, float learning_rate) {
  rnncc_optimizer result{};
  result.struct_size = sizeof result;
  result.rule = rule;
  result.learning_rate = learning_rate;
  result.beta1 = 0.9f;
  result.beta2 = 0.999f;
  result.epsilon = 1e-8f;
  result.weight_decay = rule == RNNCC_ADAMW ? 0.01f : 0;
  return result;
}

// A context of a module of `rnncc --train`, which also computes gradients and changes the model's weights by them. What
// run() was given must stay until backward() has returned. Weights may change while other contexts of the model run.
class trainer : public context {
public:
  explicit trainer(const model &of) : context(of), training_(table(of.of().api())) {
    if (!training_)
      throw error(RNNCC_ERROR_UNSUPPORTED,
                  std::string(of.of().info().name) + ": expected a module that `rnncc --train` made");
  }

  const rnncc_training_info &training() const noexcept { return *training_->info; }

  void backward() { check(training_->backward(get())); }
  // Of a module of --outer-loss: gradients of the last run's outputs go in, and those of its inputs come out, in the
  // order of training(). Input gradients get their ranks and shapes.
  void backward_from(const rnncc_tensor *given, std::size_t n_given, rnncc_tensor *found, std::size_t n_found) {
    need(RNNCC_HAS(training_, backward_from), "backward_from");
    check(training_->backward_from(get(), given, n_given, found, n_found));
  }
  template <class Given, class Found> void backward_from(const Given &given, Found &found) {
    backward_from(std::data(given), std::size(given), std::data(found), std::size(found));
  }
  void step(const rnncc_optimizer &by) {
    if (by.gradient_scale != 0 && by.gradient_scale != 1) // it came with gradients_keep
      need(RNNCC_HAS(training_, gradients_keep), "gradient_scale");
    check(training_->step(get(), &by));
  }
  void reset_optimizer() noexcept { training_->optimizer_reset(of().get()); }

  // Of all gradients together, before a step scales them.
  double gradient_norm() {
    double norm = 0;
    check(training_->gradient_norm(get(), &norm));
    return norm;
  }

  // Copies the gradient of the last backward() for a weight; a weight. `count` is that of its elements.
  void gradient(const char *name, float *data, std::size_t count) {
    check(training_->gradient(get(), name, data, count * sizeof(float)));
  }
  void get_weight(const char *name, float *data, std::size_t count) const {
    require(training_->weights_get(of().get(), name, data, count * sizeof(float)), name);
  }
  void set_weight(const char *name, const float *data, std::size_t count) {
    require(training_->weights_set(of().get(), name, data, count * sizeof(float)), name);
  }

  // These weights, made by rnncc::weight, at once.
  void set_weights(const rnncc_weight *weights, std::size_t n) {
    char why[512];
    need(RNNCC_HAS(training_, weights_update), "weights_update");
    rnncc_status status = training_->weights_update(of().get(), weights, n, why, sizeof why);
    if (status != RNNCC_OK) throw error(status, why);
  }
  void set_weights(std::initializer_list<rnncc_weight> weights) { set_weights(weights.begin(), weights.size()); }

  // What each step's learning rate and weight decay are multiplied by, for this weight; a rate of 0 freezes it.
  void weight_factors(const char *name, float learning_rate, float weight_decay) {
    need(RNNCC_HAS(training_, weight_factors), "weight_factors");
    if (training_->weight_factors(of().get(), name, learning_rate, weight_decay) != RNNCC_OK)
      throw error(RNNCC_ERROR_ARGUMENT, std::string("weight_factors: ") + (name ? name : "") +
                                            ": no such weight, or a factor that is negative or not finite");
  }

  // The last gradients are added to those of the next backward(), until step(); see gradients_keep of rnncc.h.
  void keep_gradients(bool keep = true) {
    need(RNNCC_HAS(training_, gradients_keep), "gradients_keep");
    check(training_->gradients_keep(get(), keep));
  }

  // What the next runs draw, Dropout's masks, is that of the seed.
  void seed(std::uint64_t seed) {
    need(RNNCC_HAS(training_, seed), "seed");
    check(training_->seed(get(), seed));
  }

  // All that training goes on from; see checkpoint_get of rnncc.h.
  std::vector<unsigned char> checkpoint() {
    need(RNNCC_HAS(training_, checkpoint_set), "checkpoint_get");
    std::vector<unsigned char> data(training_->checkpoint_bytes(get()));
    check(training_->checkpoint_get(get(), data.data(), data.size()));
    return data;
  }
  void restore(const void *data, std::size_t bytes) {
    need(RNNCC_HAS(training_, checkpoint_set), "checkpoint_set");
    check(training_->checkpoint_set(get(), data, bytes));
  }

private:
  // Null also of a module that is older than training.
  static const rnncc_training *table(const rnncc_api &api) {
    return RNNCC_HAS(&api, training) ? api.training : nullptr;
  }

  static void need(bool has, const char *function) {
    if (!has)
      throw error(RNNCC_ERROR_UNSUPPORTED, std::string(function) + ": the module is of an older rnncc, which had none");
  }

  // Of the model, which keeps no message.
  static void require(rnncc_status status, const char *of_what) {
    if (status != RNNCC_OK)
      throw error(status, std::string(of_what ? of_what : "") + ": no such weight, or not of this size");
  }

  const rnncc_training *training_;
};

} // namespace rnncc

#endif
