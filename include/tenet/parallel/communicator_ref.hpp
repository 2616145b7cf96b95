// A communicator whose type is forgotten: what layers hold, so that a model is the same type for each engine.
#pragma once

#include <tenet/parallel/communicator.hpp>

namespace tenet::parallel {

/// What a CommunicatorRef asks of the communicator behind it.
struct CommunicatorCalls {
  int (*rank)(void*);
  int (*size)(void*);
  int (*world_rank)(void*, int rank);
  void (*all_reduce_float)(void*, float*, std::int64_t n, std::string_view what);
  void (*all_reduce_double)(void*, double*, std::int64_t n, std::string_view what);
  void (*all_gather)(void*, const void* in, void* out, std::int64_t bytes, std::string_view what);
};

inline namespace TENET_CONFIG {
namespace detail {

template <class C>
C& as(void* comm) {
  return *static_cast<C*>(comm);
}

template <Communicator C>
inline constexpr CommunicatorCalls communicator_calls{
    .rank = [](void* c) -> int { return as<C>(c).rank(); },
    .size = [](void* c) -> int { return as<C>(c).size(); },
    .world_rank = [](void* c, int rank) -> int { return as<C>(c).world_rank(rank); },
    .all_reduce_float = [](void* c, float* data, std::int64_t n,
                           std::string_view what) { as<C>(c).all_reduce(data, n, what); },
    .all_reduce_double = [](void* c, double* data, std::int64_t n,
                            std::string_view what) { as<C>(c).all_reduce(data, n, what); },
    .all_gather = [](void* c, const void* in, void* out, std::int64_t bytes,
                     std::string_view what) { as<C>(c).all_gather(in, out, bytes, what); },
};

}  // namespace detail
}  // namespace TENET_CONFIG

/// Refers to a communicator, which must outlive it; see Communicator.
class CommunicatorRef {
 public:
  template <Communicator C>
  TENET_TAG CommunicatorRef(C& comm) : comm_(&comm), calls_(&detail::communicator_calls<C>) {}

  TENET_TAG int rank() const { return calls_->rank(comm_); }
  TENET_TAG int size() const { return calls_->size(comm_); }
  TENET_TAG int world_rank(int rank) const { return calls_->world_rank(comm_, rank); }
  TENET_TAG void all_reduce(float* data, std::int64_t n, std::string_view what = "") const {
    calls_->all_reduce_float(comm_, data, n, what);
  }
  TENET_TAG void all_reduce(double* data, std::int64_t n, std::string_view what = "") const {
    calls_->all_reduce_double(comm_, data, n, what);
  }
  TENET_TAG void all_gather(const void* in, void* out, std::int64_t bytes, std::string_view what = "") const {
    calls_->all_gather(comm_, in, out, bytes, what);
  }

 private:
  void* comm_;
  const CommunicatorCalls* calls_;
};

}  // namespace tenet::parallel
