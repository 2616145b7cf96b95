// Checkpoints of trainings over several ranks, in the files of checkpoint.hpp. Needs nlohmann-json: component
// tenet::checkpoint.
//   parallel::FullyShardedDataParallel fsdp(model, comm);  // or DistributedDataParallel
//   save_training(fsdp, optimizer, "run.safetensors", {.epoch = 3});
//
// Whatever the ranks keep parts of stands there whole: any number of ranks goes on from the file, and so does one
// worker by load_training(model, optimizer, path). In a mesh each stage of a pipeline needs a file of its own; layers
// split over ranks are saved by parallel::whole_state_dict.
#pragma once

#include <tenet/core/hash.hpp>
#include <tenet/core/random.hpp>
#include <tenet/io/checkpoint.hpp>

#include <array>

namespace tenet {
inline namespace TENET_CONFIG {

/// A model on several ranks: its state and that of an optimizer, whole on rank 0 at least.
template <class D, class O>
concept DistributedModel = requires(D& d, O& o, const NamedTensors& state) {
  d.communicator().rank();
  { d.state_dict() } -> std::convertible_to<NamedTensors>;
  { d.state_dict(o) } -> std::convertible_to<NamedTensors>;
  d.load_state_dict(state);
  d.load_state_dict(o, state);
};

namespace detail {

inline constexpr std::string_view generators_name = "training/generators";  // of each rank

/// Runs `f` on this rank. When it throws on one, every rank throws Error with the text of the first such rank.
template <class C, class F>
void on_all_ranks(C& comm, const char* op, const F& f) {
  std::string failure;
  try {
    f();
  } catch (const std::exception& e) {
    failure = e.what();
  }
  std::vector<std::int64_t> lengths(std::size_t(comm.size()));
  const auto mine = std::int64_t(failure.size());
  comm.all_gather(&mine, lengths.data(), sizeof mine, op);
  for (int r = 0; r < comm.size(); ++r) {
    if (lengths[std::size_t(r)] == 0) continue;
    failure.resize(std::size_t(lengths[std::size_t(r)]));
    comm.broadcast(failure.data(), lengths[std::size_t(r)], r, op);
    throw Error(text({op, ": rank ", comm.world_rank(r), " failed: ", failure}));
  }
}

/// The stream of a rank. Ranks beyond those that wrote get streams of their own.
inline GeneratorState generator_for(int rank, const std::vector<std::int64_t>& all) {
  const auto r = std::size_t(rank);
  if (2 * r < all.size()) return generator_of(all, r);
  const GeneratorState first = generator_of(all);
  return {philox(first.seed, first.offset + r).word64(0), 0};
}

inline std::vector<std::int64_t> generators_of(const TensorFile& file) {
  for (const auto& [name, tensor] : file.tensors) {
    if (name != generators_name) continue;
    if (tensor.dim() == 2 && tensor.size(0) > 0 && tensor.size(1) == 2) {
      return Tensor<std::int64_t>(tensor).to_vector();
    }
    throw Error(text({"expected two numbers a rank as ", name, ", got shape ", tensor.shape()}));
  }
  return numbers_of(file, generator_name, 2);
}

/// Throws Error on every rank unless all have read the same moment of a training.
template <class C>
void check_same_file(C& comm, const TensorFile& file, const TrainingProgress& progress,
                     const std::vector<std::int64_t>& generators) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : file.tensors) {
    hash = hash_bytes(name.data(), name.size(), hash);
    hash = hash_bytes(tensor.data_ptr(), std::size_t(tensor.numel()) * item_size(tensor.dtype()), hash);
  }
  const std::array<std::int64_t, 5> mine{progress.epoch, progress.batch, generators[0], generators[1],
                                         std::int64_t(hash)};
  std::vector<std::array<std::int64_t, 5>> all(std::size_t(comm.size()));
  comm.all_gather(&mine, all.data(), sizeof mine, "what the file holds");
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] != all[0]) {
      throw Error(text(
          {"load_training: rank ", comm.world_rank(int(r)), " has read another file than rank ", comm.world_rank(0)}));
    }
  }
}

}  // namespace detail

/// Writes all that a training needs to go on: model, optimizer, progress and each rank's default generator. Rank 0
/// writes the file, which appears whole or not at all; when it cannot, every rank throws Error. All ranks call it.
template <class D, class O>
requires DistributedModel<D, O>
void save_training(D& model, O& optimizer, const std::string& path, const TrainingProgress& progress) {
  auto& comm = model.communicator();
  const GeneratorState mine = default_generator().state();
  const Tensor<std::int64_t> generators = empty<std::int64_t>({comm.size(), 2});
  comm.all_gather(&mine, generators.data(), sizeof mine, "generators");
  NamedTensors state = model.state_dict();
  const NamedTensors optimizer_state = model.state_dict(optimizer);
  detail::on_all_ranks(comm, "save_training", [&] {
    if (comm.rank() != 0) return;
    NamedTensors all = detail::training_tensors(std::move(state), optimizer_state, progress, mine);
    all.emplace_back(detail::generators_name, generators);
    save_tensors(path, all, detail::checkpoint_metadata());
  });
}

/// Reads what save_training() wrote, with any number of ranks or as one worker; each rank reads the file. Ranks that
/// were not there get random numbers of their own. When one rank cannot read the file, or reads another one than rank
/// 0, or it does not fit, every rank throws Error and its training is as before. All ranks call it.
template <class D, class O>
requires DistributedModel<D, O> TrainingProgress load_training(D& model, O& optimizer, const std::string& path) {
  auto& comm = model.communicator();
  TensorFile file;
  TrainingProgress progress;
  std::vector<std::int64_t> generators;
  detail::on_all_ranks(comm, "load_training", [&] {
    file = load_tensors(path);
    detail::about("load_training", path, [&] {
      progress = detail::progress_of(file);
      generators = detail::generators_of(file);
    });
  });
  detail::check_same_file(comm, file, progress, generators);
  detail::on_all_ranks(comm, "load_training", [&] {
    detail::about("load_training", path, [&] {
      detail::load_both(file, model, optimizer,
                        [&](const NamedTensors& state) { model.load_state_dict(optimizer, state); });
    });
  });
  default_generator().set_state(detail::generator_for(comm.rank(), generators));
  return progress;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
