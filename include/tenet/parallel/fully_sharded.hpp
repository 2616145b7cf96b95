// FullyShardedDataParallel: data-parallel training in which each rank keeps a part of the optimizer's state, of the
// gradients and of the parameters. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
// models", 2020.
//   parallel::FullyShardedDataParallel fsdp(model, comm);
//   optim::AdamW optimizer(fsdp.parameters());
//   ... loss = criterion(fsdp(inputs), labels); loss.backward(); optimizer.step(); ...
#pragma once

#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/shard.hpp>
#include <tenet/parallel/units.hpp>

#include <memory>

namespace tenet::parallel {

struct ShardingOptions {
  /// What a rank keeps a part of: 1 the optimizer's state, 2 the gradients as well, 3 the parameters as well.
  int stage = 3;
  bool broadcast_buffers = true;  ///< buffers are rank 0's in every forward of training
};

/// Trains one model on all ranks, as DistributedDataParallel does: with the same start, the same mean over the examples
/// of all ranks, and the same errors. Any optimizer that treats elements alike trains the shards that parameters()
/// gives, and so keeps a rank's part of the state. In between the model holds those shards too.
///
/// A unit is a module that owns parameters. In stage 3 they are whole during the unit's forward and backward alone; an
/// alias of a parameter that a graph keeps (a view, a copy in other precision) keeps its memory until the graph goes.
/// From stage 2 on a unit's gradients are exchanged as soon as its backward is over; in stage 1 all together at the
/// end. So from stage 2 on all ranks call the same units in the same order, a unit gives one tensor, and its parameters
/// are used in its own call. Gradients accumulate over several backwards as on one worker. Parameters that no rank uses
/// get no gradient. Backward throws NotImplemented for create_graph.
///
/// The model stays where it is and, with the communicator, outlives this and its graphs. Ranks see different gradients:
/// what depends on them, as a GradScaler's choice to skip a step, must be agreed on; for clipping,
/// optim::clip_grad_norm_ takes this in the place of parameters. See torch.distributed.fsdp.FullyShardedDataParallel.
template <class M, Communicator C>
class FullyShardedDataParallel {
  static_assert(nn::IsModule<M>, "FullyShardedDataParallel: expected a module");

 public:
  /// Throws Error on every rank where the models differ, naming the parameter and the ranks, and unless the stage is 1,
  /// 2 or 3.
  TENET_TAG FullyShardedDataParallel(M& model, C& comm, const ShardingOptions& options = {})
      : module_(&model), options_(options), model_(std::make_shared<detail::ShardedModel<C>>()) {
    if (options.stage < 1 || options.stage > 3) {
      throw Error(text({"fully_sharded: expected stage 1, 2 or 3, got ", options.stage}));
    }
    std::vector<nn::StateSlot> slots = model.state_slots();
    start_alike(comm, slots);
    model_->comm = &comm;
    {
      const detail::Trained own(model);
      model_->units = detail::units_of(model, own, options.stage == 1);
      for (std::size_t i = 0; i < own.tensors().size(); ++i) {
        model_->shards.emplace_back(comm, own.names()[i], own.tensors()[i], options.stage < 3);
      }
      for (const detail::Unit& unit : model_->units) {
        for (const detail::Unit::Slot& s : unit.slots) s.tensor->ref() = model_->shards[s.shard].shard().ref();
      }
    }
    slots_ = std::move(slots);
    memory::empty_cache();  // where the whole parameters were
  }

  TENET_TAG M& module() const { return *module_; }
  TENET_TAG C& communicator() const { return *model_->comm; }
  /// This rank's shard of each parameter, flat, in the order of the model's parameters().
  TENET_TAG std::vector<AnyTensor> parameters() const {
    std::vector<AnyTensor> out;
    for (const ShardedParameter<C>& s : model_->shards) out.push_back(s.shard());
    return out;
  }

  /// model(args...) of this rank; backward exchanges the gradients.
  template <class... A>
  TENET_TAG auto operator()(const A&... args) {
    using Y = std::remove_cvref_t<decltype((*module_)(args...))>;
    static_assert(TensorLike<Y>, "FullyShardedDataParallel: the model gives one tensor");
    if (options_.broadcast_buffers && module_->is_training()) broadcast_buffers(communicator(), slots_);
    double share = 0;
    if (state::grad_enabled) {
      const std::int64_t mine = detail::examples_of(args...);
      std::int64_t all = mine;
      communicator().all_reduce(&all, 1, "the number of examples");
      share = all ? double(mine) / double(all) : 0;
    }
    const detail::UnitCalls<C> calls(model_, share);
    return tensor_t<Y>((*module_)(args...));
  }

  /// Parameters and buffers by name, whole, as model.state_dict() would give them on one worker: on rank 0, and nothing
  /// on the others. All ranks call it, between calls of the model. This and the following throw Error for models with
  /// layers that are split over ranks.
  TENET_TAG nn::StateDict state_dict() {
    detail::expect_whole("fully_sharded", *module_);
    std::vector<AnyTensor> whole;
    for (const ShardedParameter<C>& s : model_->shards) whole.push_back(s.collect(s.shard()));
    nn::StateDict out;
    if (communicator().rank() != 0) return out;
    for (const nn::StateSlot& s : slots_) out.emplace_back(s.name, s.trains ? whole[shard_of(s)] : *s.tensor);
    return out;
  }
  /// Takes over a state of whole tensors, on each rank its part. Throws Error as Module::load_state_dict() does, and
  /// changes nothing then.
  TENET_TAG void load_state_dict(const nn::StateDict& dict, const nn::LoadOptions& options = {}) {
    detail::expect_whole("fully_sharded", *module_);
    std::vector<nn::StateSlot> slots = slots_;
    for (nn::StateSlot& s : slots) {
      if (s.trains) s.tensor = &model_->shards[shard_of(s)].whole();
    }
    nn::check_state(slots, dict, options);
    for (const nn::StateSlot& s : slots_) {
      const AnyTensor* from = nn::detail::find(dict, s.name);
      if (!from) continue;
      const AnyTensor part = s.trains ? model_->shards[shard_of(s)].part_of(*from, s.name) : *from;
      nn::detail::copy_elements(*s.tensor->impl(), *part.impl());
    }
  }

  /// The state of an optimizer over the shards, whole, as one worker's optimizer over the parameters would give it: on
  /// rank 0, and nothing on the others. All ranks call it.
  template <class O>
  TENET_TAG nn::StateDict state_dict(const O& optimizer) {
    detail::expect_whole("fully_sharded", *module_);
    nn::StateDict out;
    for (auto& [key, tensor] : optimizer.state_dict()) {
      const ShardedParameter<C>* s = shard_of(optimizer, key);
      out.emplace_back(key, s ? s->collect(tensor) : tensor);
    }
    if (communicator().rank() != 0) out.clear();
    return out;
  }
  /// Takes over an optimizer's state of whole tensors, on each rank its part. Throws Error if it does not fit, and
  /// changes nothing then.
  template <class O>
  TENET_TAG void load_state_dict(O& optimizer, const nn::StateDict& dict) {
    detail::expect_whole("fully_sharded", *module_);
    nn::StateDict mine;
    for (const auto& [key, tensor] : dict) {
      const ShardedParameter<C>* s = shard_of(optimizer, key);
      mine.emplace_back(key, s ? s->part_of(tensor, key) : tensor);
    }
    optimizer.load_state_dict(mine);
  }

  /// A number of each rank, in their order; all ranks call it. optim::clip_grad_norm_ asks for the norms so.
  TENET_TAG std::vector<double> of_all_ranks(double mine) const {
    std::vector<double> all(static_cast<std::size_t>(communicator().size()));
    communicator().all_gather(&mine, all.data(), sizeof mine, "a number of each rank");
    return all;
  }

 private:
  TENET_TAG std::size_t shard_of(const nn::StateSlot& slot) const {
    for (std::size_t i = 0; i < model_->shards.size(); ++i) {
      if (model_->shards[i].shard().is(*slot.tensor)) return i;
    }
    throw Error(text({"fully_sharded: '", slot.name, "' of the model is no longer the shard it was given"}));
  }
  /// The shard whose state in an optimizer has the name `key`, "state.3.exp_avg"; null for what is no tensor of a
  /// shard.
  template <class O>
  TENET_TAG const ShardedParameter<C>* shard_of(const O& optimizer, const std::string& key) const {
    constexpr std::string_view prefix = "state.";
    if (!key.starts_with(prefix) || key.ends_with(".step")) return nullptr;
    const std::size_t i = std::strtoull(key.c_str() + prefix.size(), nullptr, 10);
    if (i >= optimizer.parameters().size()) return nullptr;
    for (const ShardedParameter<C>& s : model_->shards) {
      if (s.shard().is(optimizer.parameters()[i])) return &s;
    }
    return nullptr;
  }

  M* module_;
  ShardingOptions options_;
  std::shared_ptr<detail::ShardedModel<C>> model_;
  std::vector<nn::StateSlot> slots_;
};

}  // namespace tenet::parallel
