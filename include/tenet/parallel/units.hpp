// The units of a sharded model: modules whose parameters are gathered, used and freed together.
#pragma once

#include <tenet/parallel/pass.hpp>
#include <tenet/parallel/sharded_parameter.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {
namespace detail {

/// A module and the shards of its parameters, each once.
struct Unit {
  struct Slot {
    AnyTensor* tensor;  // a parameter of the module
    std::size_t shard;
  };
  std::string name;
  const void* module;
  std::vector<Slot> slots;
  std::vector<std::size_t> shards;
};

/// What a model and its graphs share.
template <class C>
struct ShardedModel {
  C* comm;
  std::vector<ShardedParameter<C>> shards;
  std::vector<Unit> units;

  const Unit* find(const void* module) const {
    for (const Unit& u : units) {
      if (u.module == module) return &u;
    }
    return nullptr;
  }

  /// While it lives, the parameters of a unit are whole.
  class Use {
   public:
    Use(ShardedModel& model, const Unit& unit) : model_(&model), unit_(&unit) {
      try {
        for (; gathered_ < unit.shards.size(); ++gathered_) model.shards[unit.shards[gathered_]].gather();
      } catch (...) {
        release();
        throw;
      }
    }
    ~Use() { release(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    void release() {
      while (gathered_ > 0) model_->shards[unit_->shards[--gathered_]].release();
    }
    ShardedModel* model_;
    const Unit* unit_;
    std::size_t gathered_ = 0;
  };
};

struct FullyShardedName {
  static constexpr const char* name = "fully_sharded_data_parallel";
};

/// Backward of a unit's call: with its parameters whole, and then the exchange of their gradients.
template <class C>
struct UnitPass final : Pass {
  std::shared_ptr<ShardedModel<C>> model;
  const Unit* unit;
  double share;  // of this rank in the examples of all
  AnyTensor output;
  std::vector<AnyTensor> arguments;  // leaves of those that a gradient is wanted of

  void backward(const AnyTensor& gradient, AnyTensor* out) override {
    try {
      run(gradient);
    } catch (...) {  // what it left in the leaves is no gradient of the next one
      for (const AnyTensor& leaf : arguments) leaf.zero_grad();
      for (const std::size_t i : unit->shards) model->shards[i].whole().zero_grad();
      throw;
    }
    for (const AnyTensor& leaf : arguments) *out++ = take_gradient(leaf);
    for (const std::size_t i : unit->shards) {
      ShardedParameter<C>& s = model->shards[i];
      if (s.shard().requires_grad()) *out = s.reduce(take_gradient(s.whole()), share);
      ++out;
    }
  }

 private:
  void run(const AnyTensor& gradient) {
    const typename ShardedModel<C>::Use use(*model, *unit);  // all ranks gather, also where nothing needs it
    if (!output.requires_grad()) return;
    dispatch_floating(FullyShardedName::name, output.dtype(),
                      [&]<class T>(T) { Tensor<T>(output).backward(Tensor<T>(gradient), {.retain_graph = true}); });
  }
};

/// While it lives, the calls of units on this thread are passes, and find their parameters whole.
template <class C>
class UnitCalls final : public nn::CallObserver {
 public:
  UnitCalls(const std::shared_ptr<ShardedModel<C>>& model, double share)
      : model_(model), share_(share), outer_(std::exchange(state::call_observer, this)) {}
  ~UnitCalls() {
    while (!open_.empty()) close();
    state::call_observer = outer_;
  }
  UnitCalls(const UnitCalls&) = delete;
  UnitCalls& operator=(const UnitCalls&) = delete;

  void calling(const void* module, AnyTensor* arguments, std::size_t count) override {
    const Unit* unit = model_->find(module);
    if (!unit) return;
    Call& call = open_.emplace_back();
    call.unit = unit;
    call.use = std::make_unique<typename ShardedModel<C>::Use>(*model_, *unit);
    for (const Unit::Slot& s : unit->slots) s.tensor->ref() = model_->shards[s.shard].whole().ref();
    if (!state::grad_enabled) return;
    call.pass = std::make_unique<UnitPass<C>>();
    for (AnyTensor* x = arguments; x != arguments + count; ++x) {
      if (!x->defined() || !x->requires_grad()) continue;
      call.inputs.push_back(*x);
      call.pass->arguments.push_back(leaf_of(*x));
      *x = call.pass->arguments.back();
    }
  }

  void called(const void* module, AnyTensor& result) override {
    if (!model_->find(module)) return;
    while (open_.back().unit->module != module) close();  // calls that ended by an exception
    const Unit& unit = *open_.back().unit;
    std::unique_ptr<UnitPass<C>> pass = std::move(open_.back().pass);
    std::vector<AnyTensor> inputs = std::move(open_.back().inputs);
    close();
    if (!pass) return;
    if (!result || !is_floating(result.dtype())) {
      throw Error(text({FullyShardedName::name, ": expected module '", unit.name,
                        "', which has parameters, to give one floating tensor"}));
    }
    for (const std::size_t i : unit.shards) inputs.push_back(model_->shards[i].shard());
    pass->model = model_;
    pass->unit = &unit;
    pass->share = share_;
    pass->output = result;
    result = AnyTensor(make_alias(*result.impl(), result.shape(), result.strides(), 0));
    dispatch_floating(FullyShardedName::name, result.dtype(),
                      [&]<class T>(T) { record_pass<FullyShardedName>(Tensor<T>(result), inputs, std::move(pass)); });
  }

 private:
  struct Call {
    const Unit* unit = nullptr;
    std::unique_ptr<typename ShardedModel<C>::Use> use;
    std::unique_ptr<UnitPass<C>> pass;  // where gradients are wanted
    std::vector<AnyTensor> inputs;      // that they are wanted of
  };
  /// The innermost call is over: its module has the shards again.
  void close() {
    for (const Unit::Slot& s : open_.back().unit->slots) s.tensor->ref() = model_->shards[s.shard].shard().ref();
    open_.pop_back();
  }

  std::shared_ptr<ShardedModel<C>> model_;
  double share_;
  nn::CallObserver* outer_;
  std::vector<Call> open_;  // outermost first
};

/// The units of a model: the modules that own parameters, or the model as one.
template <class M>
std::vector<Unit> units_of(M& model, const Trained& own, bool one) {
  std::vector<Unit> units;
  const auto add = [&](std::string name, const void* module, const std::vector<nn::StateSlot>& slots) {
    Unit unit{std::move(name), module, {}, {}};
    for (const nn::StateSlot& s : slots) {
      if (!s.trains) continue;
      std::size_t i = 0;
      while (!own.tensors()[i].is(*s.tensor)) ++i;
      unit.slots.push_back({s.tensor, i});
      if (std::find(unit.shards.begin(), unit.shards.end(), i) == unit.shards.end()) unit.shards.push_back(i);
    }
    if (!unit.slots.empty()) units.push_back(std::move(unit));
  };
  if (one) {
    add("", &model, model.state_slots());
    return units;
  }
  model.each_module([&](const std::string& name, auto& module) {
    std::vector<nn::StateSlot> slots;
    module.each_member([&]<class X>(std::string_view n, X& x) {
      if constexpr (nn::StateTensor<X>) x.collect(std::string(n), slots);
    });
    add(name, &module, slots);
  });
  return units;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
