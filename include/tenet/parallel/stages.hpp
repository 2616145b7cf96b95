// Which stage of a model a rank builds.
#pragma once

#include <tenet/nn/container.hpp>
#include <tenet/parallel/communicator.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {

/// Makes this rank's stage of a model, by the function of that place, and calls f(stage):
///   run_stages(comm, train, [&] { return layers<0, 3>(net); }, [&] { return layers<3, 6>(net); });
/// Throws Error unless there is a stage for each rank.
template <Communicator C, class F, class... Make>
requires(sizeof...(Make) > 0) void run_stages(C& comm, const F& f, const Make&... make) {
  if (comm.size() != int(sizeof...(Make))) {
    throw Error(text({"run_stages: expected a stage for each of ", comm.size(), " ranks, got ", sizeof...(Make)}));
  }
  int rank = 0;
  const auto one = [&](const auto& m) {
    if (rank++ != comm.rank()) return;
    auto stage = m();
    f(stage);
  };
  (one(make), ...);
}
/// The same with stages that need no arguments: run_stages<Features, Classifier>(comm, train).
template <class... Stage, Communicator C, class F>
requires(sizeof...(Stage) > 0) void run_stages(C& comm, const F& f) {
  run_stages(comm, f, [] { return Stage(); }...);
}

/// A copy of layers [Begin, End) of a Sequential.
template <std::size_t Begin, std::size_t End, class... M>
auto layers(nn::Sequential<M...>& net) {
  static_assert(Begin <= End && End <= sizeof...(M), "parallel::layers: expected layers of the Sequential");
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return nn::Sequential<std::remove_cvref_t<decltype(net.template get<Begin + I>())>...>(
        net.template get<Begin + I>()...);
  }
  (std::make_index_sequence<End - Begin>());
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
