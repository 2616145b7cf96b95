// Module: what layers and models have in common.
//
// A model is a plain struct that names its members once:
//   struct Net : nn::Module<Net> {
//     nn::Linear<> fc1{784, 100}, fc2{100, 10};
//     TENET_MODULE(fc1, fc2)
//     Tensor<float> forward(Tensor<float> x) { return fc2(relu(fc1(x))); }
//   };
#pragma once

#include <tenet/nn/parameter.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/nn/weight.hpp>

#include <string_view>
#include <tuple>

/// Names the layers, parameters and buffers of a module, in order.
#define TENET_MODULE(...)                                                                    \
  static constexpr ::std::string_view tenet_names() { return #__VA_ARGS__; }                 \
  auto tenet_members() {                                                                     \
    static_assert(::tenet::nn::is_module_of_itself<::std::remove_pointer_t<decltype(this)>>, \
                  "a module is written: struct Net : nn::Module<Net>");                      \
    return ::std::tie(__VA_ARGS__);                                                          \
  }

namespace tenet::nn {

struct ModuleBase {};

template <class Self>
class Module;

/// Told of every module call of a thread, before it and after. It may put other tensors of the same type in the place
/// of the arguments and of the result; what is no tensor is undefined here.
struct CallObserver {
  virtual void calling([[maybe_unused]] const void* module, [[maybe_unused]] AnyTensor* arguments,
                       [[maybe_unused]] std::size_t count) {}
  virtual void called(const void* module, AnyTensor& result) = 0;

 protected:
  ~CallObserver() = default;
};

/// A module inside a module, for summary(): parameters are its own, not those of modules inside it.
struct ModuleSlot {
  std::string name;
  std::string_view type;
  const void* address;
  bool* training;
  int depth;
  std::int64_t parameters;
  bool leaf;
};

}  // namespace tenet::nn

namespace tenet::state {
inline constinit thread_local nn::CallObserver* call_observer = nullptr;
}

namespace tenet::nn {
inline namespace TENET_CONFIG {

template <class M>
concept IsModule = std::is_base_of_v<ModuleBase, std::remove_cvref_t<M>>;

template <class X>
inline constexpr bool is_module_of_itself = std::is_base_of_v<Module<X>, X>;

namespace detail {

template <class>
inline constexpr bool never = false;

/// The n-th of "conv1, conv2, fc".
constexpr std::string_view nth_name(std::string_view all, std::size_t n) {
  for (; n; --n) all.remove_prefix(all.find(',') + 1);
  all = all.substr(0, all.find(','));
  while (!all.empty() && all.front() == ' ') all.remove_prefix(1);
  while (!all.empty() && all.back() == ' ') all.remove_suffix(1);
  return all;
}

/// "Conv2d" of tenet::nn::Conv2d<float>.
template <class M>
constexpr std::string_view type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  s.remove_prefix(s.find("M = ") + 4);
  s = s.substr(0, s.find_first_of("<;]"));
  const std::size_t scope = s.rfind("::");
  return scope == s.npos ? s : s.substr(scope + 2);
}

/// An argument as the observer of the call sees it, and as the call gets it back.
template <class X>
AnyTensor as_argument(const X& x) {
  if constexpr (TensorLike<X>) return x;
  else return {};
}
template <class X>
decltype(auto) replaced(X&& x, AnyTensor& by) {  // a handle has no members of its own
  if constexpr (!TensorLike<X>) return std::forward<X>(x);
  else if constexpr (std::is_lvalue_reference_v<X>) return static_cast<tensor_t<X>&>(by);
  else return static_cast<tensor_t<X>&&>(by);
}

struct Member {
  std::string name;
  const void *begin, *end;
};
struct Members {
  std::vector<Member> all;
  /// Notes a member; gives its name in the state.
  TENET_COLD std::string add(std::string_view name, const void* begin, const void* end, const std::string& prefix,
                             const char* suffix) {
    all.push_back({std::string(name), begin, end});
    return text({prefix, name, suffix});
  }
};

/// Throws Error if one of the parameters in the bytes of `object` lies in no member. `names` is what TENET_MODULE says.
TENET_COLD inline void check_complete(const void* object, std::size_t bytes, const char* names,
                                      const std::vector<Member>& members) {
  std::size_t unnamed = 0;
  std::string_view before = "(none)";
  const auto* begin = static_cast<const unsigned char*>(object);
  for (std::size_t o = 0; o + sizeof(StateTag) <= bytes; o += alignof(StateTag)) {
    const void* at = begin + o;
    std::uintptr_t v;
    std::memcpy(&v, at, sizeof v);
    if (v != StateTag::at(at)) continue;
    const Member* nearest = nullptr;  // of those that begin before
    for (const Member& m : members) {
      if (m.begin <= at && (!nearest || nearest->begin < m.begin)) nearest = &m;
    }
    if (nearest && at < nearest->end) continue;
    if (!unnamed++ && nearest) before = nearest->name;
  }
  if (!unnamed) return;
  throw Error(text({"module: ", unnamed, " parameter(s) of this struct are not named in TENET_MODULE(", names,
                    "); the first stands after member '", before, "'"}));
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// Base of layers and models; `Self` is the struct that derives from it.
template <class Self>
class Module : public ModuleBase {
 public:
  /// Runs forward(). A type that stands for tensors, such as quant::Activation, has a function
  /// call_with_tensors(module, arguments...) in its namespace, for modules whose forward() takes only tensors.
  template <class... A>
  TENET_TAG decltype(auto) operator()(A&&... a) {
    if constexpr (requires { self().forward(std::forward<A>(a)...); }) {
      if (!state::call_observer) return self().forward(std::forward<A>(a)...);
      return observed(std::index_sequence_for<A...>(), std::forward<A>(a)...);
    } else if constexpr (requires { call_with_tensors(self(), a...); }) {
      return call_with_tensors(self(), a...);
    } else {
      static_assert(detail::never<Self>, "this module has no forward() that takes these arguments");
    }
  }

  /// The tensors that train, each once. Throws Error if a parameter of the struct is not named in TENET_MODULE.
  TENET_COLD TENET_TAG std::vector<AnyTensor> parameters() {
    std::vector<AnyTensor> out;
    for (auto& entry : named_parameters()) out.push_back(std::move(entry.second));
    return out;
  }
  /// The same with names, "conv1.weight"; a tied one under the first of its names.
  TENET_COLD TENET_TAG StateDict named_parameters() {
    StateDict out;
    for (StateSlot& s : state_slots()) {
      bool seen = !s.trains;
      for (const auto& entry : out) seen = seen || entry.second.is(*s.tensor);
      if (!seen) out.emplace_back(std::move(s.name), *s.tensor);
    }
    return out;
  }
  /// The tensors that belong to the state but do not train.
  TENET_TAG StateDict named_buffers() {
    return named([](const StateSlot& s) { return !s.trains; });
  }
  /// Parameters and buffers by name, tied ones under each of their names. The tensors are the module's own.
  TENET_TAG StateDict state_dict() {
    return named([](const StateSlot&) { return true; });
  }
  /// Copies `dict` into the parameters and buffers. Throws Error listing all that does not fit, and changes
  /// nothing then; `strict = false` lets names be missing on either side. Weights take the format they are stored
  /// in: dense, or one of `formats`.
  TENET_TAG void load_state_dict(const StateDict& dict, const LoadOptions& options = {}) {
    FormatChanges changes;
    each_weight("", [&](const std::string& name, auto& weight) { changes.follow(weight, name, dict, options); });
    load_state(state_slots(), dict, options);
    changes.keep();
  }

  /// The number of elements of parameters().
  TENET_TAG std::int64_t num_parameters() {
    std::int64_t n = 0;
    for (const AnyTensor& p : parameters()) n += p.numel();
    return n;
  }
  /// Drops the gradients of the parameters.
  TENET_TAG void zero_grad() {
    each_member([]<class M>(std::string_view, M& m) {
      if constexpr (IsModule<M>) m.zero_grad();
      else if (M::trains) m.zero_grad();
    });
  }
  /// Lets the parameters collect gradients, or freezes them.
  TENET_TAG Self& requires_grad_(bool on = true) {
    for (const AnyTensor& p : parameters()) p.impl()->requires_grad = on;
    return self();
  }

  /// Switches this module and those inside it to training or to evaluation: Dropout and its kin differ.
  TENET_TAG Self& train(bool on = true) {
    training_ = on;
    each_member([&]<class M>(std::string_view, M& m) {
      if constexpr (IsModule<M>) m.train(on);
    });
    return self();
  }
  TENET_TAG Self& eval() { return train(false); }
  TENET_TAG bool is_training() const { return training_; }

  /// Calls f(module) for each module inside this one, then for this one:
  ///   model.apply([](auto& m) {
  ///     if constexpr (requires { m.weight; }) nn::init::xavier_uniform_(m.weight);
  ///   });
  /// See torch.nn.Module.apply.
  template <class F>
  TENET_TAG Self& apply(F&& f) {
    each_member([&]<class M>(std::string_view, M& m) {
      if constexpr (IsModule<M>) m.apply(f);
    });
    f(self());
    return self();
  }

  /// Calls f(name, module) for each module inside this one, named as in the state ("features.0"), then for this one,
  /// whose name is empty.
  template <class F>
  TENET_TAG Self& each_module(F&& f, const std::string& name = "") {
    each_member([&]<class M>(std::string_view n, M& m) {
      if constexpr (IsModule<M>) m.each_module(f, name.empty() ? std::string(n) : text({name, ".", n}));
    });
    f(name, self());
    return self();
  }

  /// Moves parameters and buffers; throws DeviceError for anything but the CPU.
  TENET_TAG Self& to(Device device) {
    if (!device.is_cpu()) throw DeviceError(text({"module: cannot move to ", device, ", only to the CPU"}));
    return self();
  }

  /// A deep copy in which tied parameters are tied again.
  TENET_TAG Self clone() const {
    struct Scope {
      std::vector<ClonedTensor> clones;
      std::vector<ClonedTensor>* old = std::exchange(state::clones, &clones);
      ~Scope() { state::clones = old; }
    } scope;
    return Self(static_cast<const Self&>(*this));
  }

  // ---- for containers, checkpoints and summaries

  /// f(name, member) for each member that TENET_MODULE names.
  template <class F>
  TENET_TAG void each_member(F f) {
    if constexpr (requires { self().visit_members(f); }) {
      self().visit_members(f);
    } else if constexpr (requires { Self::tenet_names(); }) {
      auto members = self().tenet_members();
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (one(f, detail::nth_name(Self::tenet_names(), I), std::get<I>(members)), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<decltype(members)>>());
    } else {
      static_assert(detail::never<Self>, "this module has no line TENET_MODULE(member, ...) that names its members");
    }
  }

  /// Every parameter and buffer that is defined, in order.
  TENET_TAG std::vector<StateSlot> state_slots() {
    std::vector<StateSlot> slots;
    collect("", slots);
    return slots;
  }
  TENET_COLD TENET_TAG void collect(const std::string& prefix, std::vector<StateSlot>& slots) {
    detail::Members members;
    each_member([&]<class M>(std::string_view n, M& m) {
      m.collect(members.add(n, &m, &m + 1, prefix, IsModule<M> ? "." : ""), slots);
    });
    const char* names = "...";
    if constexpr (requires { Self::tenet_names(); }) names = Self::tenet_names().data();
    detail::check_complete(&self(), sizeof(Self), names, members.all);
  }
  /// f(name, weight) for each Weight.
  template <class F>
  TENET_TAG void each_weight(const std::string& prefix, F f) {
    each_member([&]<class M>(std::string_view n, M& m) {
      std::string full = prefix + std::string(n);
      if constexpr (IsModule<M>) m.each_weight(full + ".", f);
      else if constexpr (IsWeight<M>) f(full, m);
    });
  }
  /// This module and those inside it, outermost first.
  TENET_TAG void collect_modules(const std::string& n, int depth, std::vector<ModuleSlot>& modules) {
    const std::size_t at = modules.size();
    modules.push_back({n, detail::type_name<Self>(), &self(), &training_, depth, 0, true});
    each_member([&]<class M>(std::string_view name, M& m) {
      if constexpr (StateTensor<M>) {
        std::vector<StateSlot> slots;
        m.collect("", slots);
        for (const StateSlot& s : slots) modules[at].parameters += s.trains ? s.tensor->numel() : 0;
      } else {
        modules[at].leaf = false;
        m.collect_modules(std::string(name), depth + 1, modules);
      }
    });
  }

 protected:
  TENET_TAG Self& self() { return static_cast<Self&>(*this); }
  TENET_TAG const Self& self() const { return static_cast<const Self&>(*this); }

 private:
  template <class Keep>
  TENET_TAG StateDict named(Keep keep) {
    StateDict out;
    for (StateSlot& s : state_slots()) {
      if (keep(s)) out.emplace_back(std::move(s.name), *s.tensor);
    }
    return out;
  }

  template <std::size_t... I, class... A>
  TENET_COLD TENET_TAG auto observed(std::index_sequence<I...>, A&&... a) {
    AnyTensor arguments[] = {detail::as_argument(a)..., AnyTensor()};
    state::call_observer->calling(&self(), arguments, sizeof...(A));
    auto result = self().forward(detail::replaced(std::forward<A>(a), arguments[I])...);
    AnyTensor none;
    if constexpr (TensorLike<decltype(result)>) state::call_observer->called(&self(), result);
    else state::call_observer->called(&self(), none);
    return result;
  }

  template <class F, class M>
  TENET_TAG static void one(F& f, std::string_view n, M& m) {
    static_assert(IsModule<M> || StateTensor<M>,
                  "TENET_MODULE names a member that is no layer, Parameter or Buffer: leave plain values out");
    if constexpr (IsModule<M> || StateTensor<M>) f(n, m);
  }

  bool training_ = true;
};

}  // namespace tenet::nn
