// Checkpoints: models, and trainings to be resumed, in safetensors files. Needs nlohmann-json: component
// tenet::checkpoint.
//
// The names of a model's tensors are PyTorch's, so that
//   model.load_state_dict(safetensors.torch.load_file("lenet.safetensors"))
// reads there what save() wrote here, and load() reads what safetensors.torch.save_file wrote. A training's state
// stands beside the model in the same file, under names that begin with "training/": load() passes over them.
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/core/generator.hpp>
#include <tenet/io/safetensors.hpp>
#include <tenet/nn/module.hpp>

namespace tenet {

/// How far a training has come, besides its model, its optimizer and the default generator.
struct TrainingProgress {
  std::int64_t epoch = 0;   ///< epochs done
  std::int64_t batch = 0;   ///< batches done of the next
  NamedTensors extra = {};  ///< what the program itself wants to find again
};

inline namespace TENET_CONFIG {

/// Something with a state by name: an optimizer.
template <class O>
concept Stateful = requires(O& o, const NamedTensors& state) {
  { o.state_dict() } -> std::convertible_to<NamedTensors>;
  o.load_state_dict(state);
};

namespace detail {

inline constexpr std::string_view training_prefix = "training/";
inline constexpr std::string_view optimizer_prefix = "training/optimizer/";
inline constexpr std::string_view extra_prefix = "training/extra/";
inline constexpr std::string_view epoch_name = "training/epoch";
inline constexpr std::string_view batch_name = "training/batch";
inline constexpr std::string_view generator_name = "training/generator";

inline const Metadata& checkpoint_metadata() {
  static const Metadata metadata{{"format", "pt"}};  // as PyTorch's libraries mark tensors in its layout
  return metadata;
}

inline void append(NamedTensors& all, std::string_view prefix, const NamedTensors& part) {
  for (const auto& [name, tensor] : part) all.emplace_back(std::string(prefix) + name, tensor);
}
/// The tensors whose names begin with `prefix`, under the rest of their names.
inline NamedTensors part_of(const TensorFile& file, std::string_view prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(prefix)) part.emplace_back(name.substr(prefix.size()), tensor);
  }
  return part;
}
inline NamedTensors model_of(const TensorFile& file) {
  NamedTensors part;
  for (const auto& entry : file.tensors) {
    if (!entry.first.starts_with(training_prefix)) part.push_back(entry);
  }
  return part;
}

/// n numbers that a training needs; throws Error if the file has none.
inline std::vector<std::int64_t> numbers_of(const TensorFile& file, std::string_view name, std::int64_t n) {
  for (const auto& [key, tensor] : file.tensors) {
    if (key != name) continue;
    if (tensor.numel() == n) return Tensor<std::int64_t>(tensor).to_vector();
    throw Error(text({"expected ", n, " numbers as ", name, ", got shape ", tensor.shape()}));
  }
  throw Error(text({"expected a training, with ", name, "; the file holds a model only"}));
}

inline AnyTensor tensor_of(const GeneratorState& g) {
  return from_vector<std::int64_t>({std::int64_t(g.seed), std::int64_t(g.offset)});
}
inline GeneratorState generator_of(const std::vector<std::int64_t>& numbers, std::size_t i = 0) {
  return {std::uint64_t(numbers[2 * i]), std::uint64_t(numbers[2 * i + 1])};
}

/// All that a training's file holds.
inline NamedTensors training_tensors(NamedTensors model, const NamedTensors& optimizer,
                                     const TrainingProgress& progress, const GeneratorState& generator) {
  append(model, optimizer_prefix, optimizer);
  append(model, extra_prefix, progress.extra);
  model.emplace_back(epoch_name, scalar(progress.epoch));
  model.emplace_back(batch_name, scalar(progress.batch));
  model.emplace_back(generator_name, tensor_of(generator));
  return model;
}
inline TrainingProgress progress_of(const TensorFile& file) {
  return {numbers_of(file, epoch_name, 1)[0], numbers_of(file, batch_name, 1)[0], part_of(file, extra_prefix)};
}

/// Loads a model and, by load(state), an optimizer. Where one does not fit, neither changes.
template <class M, class O, class Load>
void load_both(const TensorFile& file, M& model, O& optimizer, const Load& load) {
  const NamedTensors before = optimizer.state_dict();  // loading replaces the tensors, these stay
  load(part_of(file, optimizer_prefix));
  try {
    model.load_state_dict(model_of(file));
  } catch (...) {
    optimizer.load_state_dict(before);
    throw;
  }
}

/// Runs `f`; an Error tells which file it is about.
template <class F>
void about(const char* op, const std::string& path, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    throw Error(text({op, ": '", path, "': ", e.what()}));
  }
}

}  // namespace detail

/// Writes the parameters and buffers of a module. The file appears whole or not at all, and the same state gives
/// the same bytes. Throws Error when it cannot be written.
template <nn::IsModule M>
void save(M& module, const std::string& path) {
  save_tensors(path, module.state_dict(), detail::checkpoint_metadata());
}

/// Reads what save() or save_training() wrote, or PyTorch, into the parameters and buffers of a module. Throws
/// Error, listing each missing or unexpected name and each wrong shape or type, and FormatError for a damaged
/// file; the module is not changed then. `{.strict = false}` lets names be missing on either side.
template <nn::IsModule M>
void load(M& module, const std::string& path, nn::LoadOptions options = {}) {
  const TensorFile file = load_tensors(path);
  detail::about("load", path, [&] { module.load_state_dict(detail::model_of(file), options); });
}

/// Writes what changes while a training runs: module, optimizer, default generator and progress. To go on as if it had
/// not stopped, make module, optimizer and schedule with the options they had, load, and set_step() the schedule. As
/// save(), otherwise.
template <nn::IsModule M, Stateful O>
void save_training(M& module, const O& optimizer, const std::string& path, const TrainingProgress& progress) {
  const NamedTensors all =
      detail::training_tensors(module.state_dict(), optimizer.state_dict(), progress, default_generator().state());
  save_tensors(path, all, detail::checkpoint_metadata());
}

/// Reads what save_training() wrote. Throws Error when it does not fit, and changes nothing then.
template <nn::IsModule M, Stateful O>
TrainingProgress load_training(M& module, O& optimizer, const std::string& path) {
  const TensorFile file = load_tensors(path);
  TrainingProgress progress;
  detail::about("load_training", path, [&] {
    const GeneratorState generator = detail::generator_of(detail::numbers_of(file, detail::generator_name, 2));
    progress = detail::progress_of(file);
    detail::load_both(file, module, optimizer, [&](const NamedTensors& s) { optimizer.load_state_dict(s); });
    default_generator().set_state(generator);
  });
  return progress;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
