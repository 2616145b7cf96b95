// Modules made of modules.
#pragma once

#include <tenet/nn/module.hpp>

namespace tenet::nn {

/// A layer without state that is increasing, element by element, such as ReLU; one that picks the greatest element
/// of each window. They give the same in either order, and the second leaves less to do for the first.
template <class M>
concept Increasing = requires {
  typename M::increasing;
};
template <class M>
concept PicksGreatest = requires {
  typename M::picks_greatest;
};

/// Runs its layers one after the other: `nn::Sequential net{nn::Linear<>{784, 100}, nn::ReLU{}, nn::Linear<>{100,
/// 10}}`. Parameters are named "0.weight", "2.weight", ... See torch.nn.Sequential.
template <class... M>
class Sequential : public Module<Sequential<M...>> {
  static_assert((IsModule<M> && ...), "nn::Sequential holds modules; write a function as a module with a forward()");

 public:
  explicit Sequential(M... layers) : layers_(std::move(layers)...) {}

  template <class X>
  auto forward(X x) {
    return run<0>(std::move(x));
  }

  /// Layer `I`: `net.template get<0>()`, or `get<0>()` where the type is known.
  template <std::size_t I>
  auto& get() {
    return std::get<I>(layers_);
  }
  static constexpr std::size_t size() { return sizeof...(M); }

  template <class F>
  void visit_members(F& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(std::string_view(std::to_string(I)), std::get<I>(layers_)), ...);
    }
    (std::index_sequence_for<M...>());
  }

 private:
  template <std::size_t I, class X>
  auto run(X x) {
    if constexpr (I == sizeof...(M)) {
      return x;
    } else {
      if constexpr (commute<I>()) {
        if (!state::call_observer) return run<I + 2>(std::get<I>(layers_)(std::get<I + 1>(layers_)(std::move(x))));
      }
      return run<I + 1>(std::get<I>(layers_)(std::move(x)));
    }
  }
  template <std::size_t I>
  static constexpr bool commute() {
    if constexpr (I + 1 < sizeof...(M)) {
      using Layers = std::tuple<M...>;
      return Increasing<std::tuple_element_t<I, Layers>> && PicksGreatest<std::tuple_element_t<I + 1, Layers>>;
    } else {
      return false;
    }
  }

  std::tuple<M...> layers_;
};

/// Any number of modules of one type, named by their place. See torch.nn.ModuleList.
template <class M>
class ModuleList : public Module<ModuleList<M>> {
  static_assert(IsModule<M>, "nn::ModuleList holds modules");

 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<M> modules) : modules_(modules) {}

  template <class... A>
  M& emplace_back(A&&... a) {
    return modules_.emplace_back(std::forward<A>(a)...);
  }
  /// Module `i`; throws IndexError outside.
  M& operator[](std::size_t i) {
    if (i >= modules_.size()) throw IndexError(text({"ModuleList: index ", i, " of ", modules_.size(), " modules"}));
    return modules_[i];
  }
  std::size_t size() const { return modules_.size(); }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }

  template <class F>
  void visit_members(F& f) {
    for (std::size_t i = 0; i < modules_.size(); ++i) f(std::string_view(std::to_string(i)), modules_[i]);
  }

 private:
  std::vector<M> modules_;
};

}  // namespace tenet::nn
