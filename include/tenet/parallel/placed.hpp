// Parts of one model on different ranks; every rank runs the same program:
//   template <class C>
//   struct Net : nn::Module<Net<C>> {
//     parallel::Part<Features, C> features;
//     parallel::Part<Classifier, C> classifier;
//     TENET_MODULE(features, classifier)
//     explicit Net(C& comm) : features(0, comm), classifier(1, comm) {}
//     auto forward(const Tensor<float>& x) { return classifier(features(x)); }
//   };
#pragma once

#include <tenet/ops/arithmetic.hpp>
#include <tenet/parallel/transfer.hpp>

namespace tenet::parallel {

/// A tensor that lives on one rank. The others hold its place: so the same lines run on every rank, and all ranks call
/// the same members in the same order. The communicator must outlive it and its graph.
template <class T, Communicator C>
class Placed {
 public:
  using value_type = T;

  /// `value` of rank `rank`; elsewhere what stands for it in the graph.
  TENET_TAG Placed(Tensor<T> value, int rank, C& comm) : value_(std::move(value)), rank_(rank), comm_(&comm) {}

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG bool here() const { return comm_->rank() == rank_; }
  /// The tensor on its rank; elsewhere a scalar that stands for it in the graph.
  TENET_TAG const Tensor<T>& value() const { return value_; }

  /// The same tensor on rank `rank`; see transfer(). Gradients take the way back.
  TENET_TAG Placed to(int rank) const { return Placed(transfer(value_, rank_, rank, *comm_), rank, *comm_); }
  /// A copy for every rank, outside the graph.
  TENET_TAG Tensor<T> everywhere() const {
    return detail::broadcast_tensor<T>(*comm_, "everywhere", rank_, value_, "values");
  }
  /// Its only element, on every rank; throws ShapeError if it has not exactly one.
  TENET_TAG T item() const { return everywhere().item(); }
  /// Gradients of this scalar with respect to the leaves that it was made of, each on its rank. All ranks call it.
  TENET_TAG void backward() const {
    if (here() || (value_.defined() && value_.requires_grad())) value_.backward();
  }

 private:
  Tensor<T> value_;
  int rank_;
  C* comm_;
};

inline namespace TENET_CONFIG {
namespace detail {

template <class>
inline constexpr bool is_placed = false;
template <class T, class C>
inline constexpr bool is_placed<Placed<T, C>> = true;

/// What a module on rank `rank` is called with.
template <class A>
decltype(auto) argument_on([[maybe_unused]] int rank, const A& a) {
  if constexpr (is_placed<A>) return Tensor<typename A::value_type>(a.to(rank).value());
  else return (a);
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// A module on one rank; the others have none, and nothing of its memory. Every rank calls it.
template <class M, Communicator C>
class Part : public nn::Module<Part<M, C>> {
  static_assert(nn::IsModule<M>, "parallel::Part: expected a module");

 public:
  /// M(args...) on rank `rank`. Throws IndexError outside the communicator.
  template <class... A>
  TENET_TAG explicit Part(int rank, C& comm, A&&... args) : rank_(rank), comm_(&comm) {
    detail::check_rank("parallel::Part", rank, comm);
    if (here()) module_.emplace_back(std::forward<A>(args)...);
  }

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG bool here() const { return comm_->rank() == rank_; }
  /// The module; throws Error on the other ranks.
  TENET_TAG M& module() {
    if (!here())
      throw Error(text({"parallel::Part: rank ", comm_->world_rank(rank_), " has the module, not rank ",
                        comm_->world_rank(comm_->rank())}));
    return module_[0];
  }

  /// The module's result, Placed on its rank. Arguments that are Placed move there first; others are taken as they are
  /// on that rank.
  template <class... A>
  TENET_TAG auto forward(const A&... args) {
    std::tuple<decltype(detail::argument_on(rank_, args))...> here_args{detail::argument_on(rank_, args)...};
    return std::apply([&](const auto&... a) { return run<A...>(a...); }, here_args);
  }

  template <class F>
  void visit_members(F& f) {
    for (M& m : module_) f(std::string_view("module"), m);
  }

 private:
  template <class... A, class... X>
  TENET_TAG auto run(const X&... x) {
    using Y = decltype(std::declval<M&>()(x...));
    static_assert(TensorLike<Y>, "parallel::Part: the module gives one tensor");
    using T = element_t<Y>;
    if (here()) return Placed<T, C>(module_[0](x...), rank_, *comm_);
    Tensor<T> place = zeros<T>({});
    (stand_for<A>(place, x), ...);
    return Placed<T, C>(place, rank_, *comm_);
  }
  /// Backward of `place` then goes on to what `x` stands for.
  template <class A, class T, class X>
  TENET_TAG static void stand_for([[maybe_unused]] Tensor<T>& place, [[maybe_unused]] const X& x) {
    if constexpr (detail::is_placed<A> && FloatElement<T>) {
      if constexpr (FloatElement<element_t<X>>) {
        if (x.defined() && x.requires_grad()) place = place + x.template to<T>();
      }
    }
  }

  int rank_;
  C* comm_;
  std::vector<M> module_;  // one on its rank
};

}  // namespace tenet::parallel
