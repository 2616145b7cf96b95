// map: out[i] = f(in[i]...) over arrays of any strides; map_many: several functions at once.
//
// There is one loop a functor, over contiguous memory. What is not contiguous, or held in half precision, goes
// through small buffers in the first-level cache, by code that knows neither the functor nor the types.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>
#include <tenet/kernels/cpu/index_space.hpp>

#include <utility>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// What a functor of map_many gives: one value for each output.
template <class T, std::size_t N>
struct Values {
  T at[N];
};

namespace detail {

inline constexpr int64_t map_grain = 32768;  // elements a piece of parallel work
inline constexpr int64_t map_block = 512;    // elements a buffer of four; of more arrays a quarter of that
inline constexpr int max_arrays = 15;        // inputs and outputs

// An array whose type is known at run time: what the driver below needs of it. Conversions to and from float are those
// of the array's own type, so that programs without halves compile none.
struct Array {
  char* data;
  const int64_t* strides;
  int64_t size;                                           // bytes of an element
  void (*widen)(int64_t n, float* out, const void* in);   // null unless a half
  void (*narrow)(int64_t n, void* out, const float* in);  // null unless a half
  bool is_half() const { return widen; }
};

template <class T>
Array array_of(const T* data, const int64_t* strides) {
  Array a{const_cast<char*>(reinterpret_cast<const char*>(data)), strides, sizeof(T), nullptr, nullptr};
  if constexpr (!std::is_same_v<T, compute_t<T>>) {
    a.widen = [](int64_t n, float* out, const void* in) { convert(n, out, static_cast<const T*>(in)); };
    a.narrow = [](int64_t n, void* out, const float* in) { convert(n, static_cast<T*>(out), in); };
  }
  return a;
}

// A contiguous loop: p holds the outputs, then the inputs, halves as float.
using Loop = void (*)(const void* f, int64_t n, void* const* p);

// Room for a block of elements.
struct Room {
  char* values;
  char* raw;  // halves before they become float and after
};
struct alignas(64) Buffer {
  char values[map_block * 8];
  char raw[map_block * 2];
  operator Room() { return {values, raw}; }
};

// Elements [i, i + n) of array `a` as contiguous values for a loop: in place where they already are.
TENET_NOINLINE inline void* fetch(const IndexSpace& space, const Array& array, int a, bool in_place, int64_t i,
                                  const int64_t* index, int64_t n, Room buffer) {
  char* values = array.data + (space.dense[a] ? i : in_place ? space.offset(a, index) : 0) * array.size;
  if (!in_place) {
    values = array.is_half() ? buffer.raw : buffer.values;
    gather(array.size, space, a, i, n, array.data, values);
  }
  if (!array.is_half()) return values;
  float* floats = reinterpret_cast<float*>(buffer.values);
  array.widen(n, floats, values);
  return floats;
}

// The way back of fetch, for an output.
TENET_NOINLINE inline void store(const IndexSpace& space, const Array& array, bool in_place, int64_t i,
                                 const int64_t* index, int64_t n, Room buffer) {
  char* to = in_place ? array.data + (space.dense[0] ? i : space.offset(0, index)) * array.size : buffer.raw;
  if (array.is_half()) array.narrow(n, to, reinterpret_cast<const float*>(buffer.values));
  if (!in_place) scatter(array.size, space, 0, i, n, array.data, array.is_half() ? buffer.raw : buffer.values);
}

// Elements [begin, end) of the space. Long runs are taken one by one, so that what is contiguous in them is used in
// place; short ones are gathered several at a time. The arrays are `outs` outputs, which lie alike and are operand 0
// of the space, then its other operands. An output without data is computed and dropped.
TENET_NOINLINE inline void map_piece(const IndexSpace& space, const Array* arrays, int outs, Loop loop, const void* f,
                                     int64_t begin, int64_t end) {
  const int count = outs + space.operands - 1;
  const int64_t block = count <= 4 ? map_block : map_block / 4;
  alignas(64) char memory[4 * sizeof(Buffer)];
  const int64_t inner = space.inner();
  const bool by_runs = inner >= map_block / 4;
  bool in_place[max_arrays], buffered = false;
  Room buffers[max_arrays];
  const auto operand = [&](int a) { return a < outs ? 0 : a - outs + 1; };
  for (int a = 0; a < count; ++a) {
    const int at = operand(a);
    in_place[a] = arrays[a].data && (space.dense[at] || (by_runs && space.strides[at][space.rank - 1] == 1));
    buffered = buffered || !in_place[a] || arrays[a].is_half();
    buffers[a] = {memory + a * block * 10, memory + a * block * 10 + block * 8};
  }
  int64_t index[max_rank];
  void* p[max_arrays];
  for (int64_t i = begin, n; i < end; i += n) {
    space.locate(i, index);
    n = end - i;
    if (by_runs && inner - index[space.rank - 1] < n) n = inner - index[space.rank - 1];
    if (buffered && n > block) n = block;
    const int64_t at = space.dense[0] ? i : space.offset(0, index);
    const auto direct = [&](int a) { return in_place[a] && !arrays[a].is_half(); };
    for (int a = 0; a < outs; ++a) p[a] = direct(a) ? arrays[a].data + at * arrays[a].size : buffers[a].values;
    for (int a = outs; a < count; ++a) {
      p[a] = fetch(space, arrays[a], operand(a), in_place[a], i, index, n, buffers[a]);
    }
    loop(f, n, p);
    for (int a = 0; a < outs; ++a) {
      if (arrays[a].data && !direct(a)) store(space, arrays[a], in_place[a], i, index, n, buffers[a]);
    }
  }
}

TENET_NOINLINE inline void map_arrays(int rank, const int64_t* shape, const Array* arrays, int outs, int ins, Loop loop,
                                      const void* f) {
  const int64_t* strides[max_operands] = {arrays[0].strides};
  for (int k = 0; k < ins; ++k) strides[k + 1] = arrays[outs + k].strides;
  const IndexSpace space(rank, shape, ins + 1, strides);
  parallel_for(space.numel, map_grain,
               [&](int64_t begin, int64_t end) { map_piece(space, arrays, outs, loop, f, begin, end); });
}

template <class F, class Out, class... In>
struct MapLoop {
  static constexpr bool fused = Fused<F>;
  template <std::size_t... I>
  TENET_ALWAYS_INLINE static void loop(const F f, int64_t n, void* const* p, std::index_sequence<I...>) {
    over(f, n, static_cast<Out*>(p[0]), static_cast<const In*>(p[I + 1])...);
  }
  // clang's `flatten` reaches one level: the functor is called here.
  __attribute__((flatten)) TENET_ALWAYS_INLINE static void over(const F f, int64_t n, Out* out, const In*... in) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) out[i] = cast<Out>(f(in[i]...));
  }
  TENET_ALWAYS_INLINE static void run(const void* f, int64_t n, void* const* p) {
    loop(*static_cast<const F*>(f), n, p, std::index_sequence_for<In...>());
  }
};

// The same of several functions: f gives the values of all outputs.
template <class F, class T, class Outs, class Ins>
struct MapManyLoop;
template <class F, class T, std::size_t... O, std::size_t... I>
struct MapManyLoop<F, T, std::index_sequence<O...>, std::index_sequence<I...>> {
  template <std::size_t>
  using Out = T*;
  template <std::size_t>
  using In = const T*;

  __attribute__((flatten)) TENET_ALWAYS_INLINE static void over(const F f, int64_t n, Out<O>... out, In<I>... in) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const Values<T, sizeof...(O)> y = f(in[i]...);
      ((out[i] = y.at[O]), ...);
    }
  }
  TENET_ALWAYS_INLINE static void run(const void* f, int64_t n, void* const* p) {
    over(*static_cast<const F*>(f), n, static_cast<T*>(p[O])..., static_cast<const T*>(p[sizeof...(O) + I])...);
  }
};

template <class F>
constexpr bool may_vectorize() {
  if constexpr (requires { F::vectorize; }) {
    return F::vectorize;
  } else {
    return true;
  }
}

template <class F, class... T>
constexpr Loop map_loop() {
  if constexpr (may_vectorize<F>() && (std::is_floating_point_v<T> || ...)) {
    return &vectorized<MapLoop<F, T...>, const void*, int64_t, void* const*>;
  } else {
    return &run_baseline<MapLoop<F, T...>, const void*, int64_t, void* const*>;
  }
}

}  // namespace detail

/// out[i] = f(in[i]...) for n contiguous elements; see map.
template <class F, class Out, class... In>
void map_contiguous(F f, int64_t n, Out* out, const In*... in) {
  constexpr detail::Loop loop = detail::map_loop<F, compute_t<Out>, compute_t<In>...>();
  constexpr bool native = std::is_same_v<Out, compute_t<Out>> && (std::is_same_v<In, compute_t<In>> && ...);
  if (native && n <= detail::map_grain) {
    void* const p[] = {out, const_cast<In*>(in)...};
    return loop(&f, n, p);
  }
  const int64_t one = 1;
  const detail::Array arrays[] = {detail::array_of(out, &one), detail::array_of(in, &one)...};
  detail::map_arrays(1, &n, arrays, 1, sizeof...(In), loop, &f);
}

/// out[i] = f(in[i]...) over the index space `shape`, for up to eight inputs. `f` is a trivially copyable functor
/// with a branch-free scalar operator(); where the arrays hold half or bfloat16 it is given and may return float.
/// operator() and the functions it calls are TENET_ALWAYS_INLINE: what is called cannot be vectorized.
/// A functor that calls library functions says so by `static constexpr bool vectorize = false`. `out` may be one
/// of the inputs (same data, same strides) but not overlap one otherwise. Throws ShapeError when rank > max_rank.
template <class F, class Out, class... In>
void map(F f, int rank, const int64_t* shape, Strided<Out> out, Strided<const In>... in) {
  static_assert(sizeof...(In) < max_operands, "map takes at most eight inputs");
  static_assert(std::is_trivially_copyable_v<F>, "map takes functors that can be copied as bytes");
  if (contiguous(rank, shape, out.strides) && (contiguous(rank, shape, in.strides) && ...)) {
    return map_contiguous(f, numel(rank, shape), out.data, in.data...);
  }
  const detail::Array arrays[] = {detail::array_of(out.data, out.strides), detail::array_of(in.data, in.strides)...};
  detail::map_arrays(rank, shape, arrays, 1, sizeof...(In), detail::map_loop<F, compute_t<Out>, compute_t<In>...>(),
                     &f);
}

namespace detail {

template <class F, class T, std::size_t Outs, std::size_t Ins>
constexpr Loop map_many_loop() {
  using L = MapManyLoop<F, T, std::make_index_sequence<Outs>, std::make_index_sequence<Ins>>;
  if constexpr (may_vectorize<F>()) return &vectorized<L, const void*, int64_t, void* const*>;
  else return &run_baseline<L, const void*, int64_t, void* const*>;
}

template <class T>
void map_many(Loop loop, const void* f, int rank, const int64_t* shape, int outs, T* const* out,
              const int64_t* out_strides, int ins, const Strided<const T>* in) {
  const int64_t n = numel(rank, shape);
  bool plain = std::is_same_v<T, compute_t<T>> && n <= map_grain && contiguous(rank, shape, out_strides);
  Array arrays[max_arrays];
  void* p[max_arrays];
  for (int k = 0; k < outs; ++k) {
    arrays[k] = array_of(out[k], out_strides);
    p[k] = out[k];
    plain = plain && out[k];
  }
  for (int k = 0; k < ins; ++k) {
    arrays[outs + k] = array_of(in[k].data, in[k].strides);
    p[outs + k] = const_cast<T*>(in[k].data);
    plain = plain && contiguous(rank, shape, in[k].strides);
  }
  if (plain) return loop(f, n, p);
  map_arrays(rank, shape, arrays, outs, ins, loop, f);
}

}  // namespace detail

/// out[k][i] = f(in[0][i], in[1][i], ...).at[k] over the index space `shape`, for up to seven outputs, which lie alike,
/// and up to eight inputs, all of one floating type. `f` is as in map and gives Values<compute_t<T>, Outs>. An output
/// whose pointer is null is not written. Outputs do not overlap anything. Throws ShapeError when rank > max_rank.
template <std::size_t Outs, std::size_t Ins, class F, class T>
void map_many(F f, int rank, const int64_t* shape, T* const* out, const int64_t* out_strides,
              const Strided<const T>* in) {
  static_assert(Ins < max_operands && Outs + Ins <= detail::max_arrays, "map_many: too many arrays");
  static_assert(std::is_trivially_copyable_v<F>, "map_many takes functors that can be copied as bytes");
  detail::map_many(detail::map_many_loop<F, compute_t<T>, Outs, Ins>(), &f, rank, shape, int(Outs), out, out_strides,
                   int(Ins), in);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
