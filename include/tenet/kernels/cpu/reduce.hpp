// Reductions over any dimensions of an array of any strides.
//
// Each output is the reduction of chunks of fixed size, whose states are merged pairwise. Chunks depend on the
// shape alone, so results do too; and errors of sums grow with the logarithm of their length.
#pragma once

#include <tenet/core/memory.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>
#include <tenet/kernels/cpu/reducers.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

inline constexpr int64_t reduce_chunk = 2048;  // elements of a chunk along one output
inline constexpr int64_t reduce_rows = 128;    // rows of a chunk across many outputs

// How an array is reduced: `kept` walks the outputs (operand 0) and the input (operand 1), `reduced` the elements of
// one output (the last operand is the input).
struct ReducePlan {
  IndexSpace kept, reduced;
  int64_t count() const { return reduced.numel; }
};

// With `ordered`, the elements of an output are visited in row-major order, else in the order of memory.
inline ReducePlan plan_reduction(int rank, const int64_t* shape, const int64_t* strides, uint32_t reduced,
                                 bool ordered) {
  if (rank > max_rank) throw ShapeError(text({"expected at most ", max_rank, " dimensions, got ", rank}));
  int64_t sizes[2][max_rank] = {}, in[2][max_rank], order[2][max_rank];
  int dims[2] = {0, 0};
  for (int d = 0; d < rank; ++d) {
    const int side = reduced >> d & 1;
    sizes[side][dims[side]] = shape[d];
    in[side][dims[side]++] = strides[d];
  }
  for (int side = 0; side < 2; ++side) {
    int64_t step = 1;
    for (int d = dims[side] - 1; d >= 0; --d) {
      order[side][d] = step;
      step *= sizes[side][d];
    }
  }
  const int64_t* const kept_strides[] = {order[0], in[0]};
  const int64_t* const reduced_strides[] = {ordered ? order[1] : in[1], in[1]};
  return {IndexSpace(dims[0], sizes[0], 2, kept_strides), IndexSpace(dims[1], sizes[1], 2, reduced_strides)};
}

// Row r of a matrix goes into the states of its columns.
template <class R, class C, class State>
struct ReduceRows {
  TENET_ALWAYS_INLINE static void run(const R* op, State* states, int64_t columns, int64_t rows, int64_t row_stride,
                                      const C* x, int64_t first) {
    const R r = *op;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * row_stride, first += 4) {
      TENET_LOOP
      for (int64_t j = 0; j < columns; ++j) {
        State s = r.step(states[j], x[j], first);
        s = r.step(s, x[row_stride + j], first + 1);
        s = r.step(s, x[2 * row_stride + j], first + 2);
        states[j] = r.step(s, x[3 * row_stride + j], first + 3);
      }
    }
    for (; i < rows; ++i, x += row_stride, ++first) {
      TENET_LOOP
      for (int64_t j = 0; j < columns; ++j) states[j] = r.step(states[j], x[j], first);
    }
  }
};

template <class Kernel, class R, class State, class... A>
void run_reduction(A... args) {
  if constexpr (may_vectorize<R>() && std::is_floating_point_v<State>) {
    vectorized<Kernel>(args...);
  } else {
    run_baseline<Kernel>(args...);
  }
}

// Merges states[0], states[step], ... (`n` of them) pairwise into states[0].
template <class R, class State>
void merge_pairwise(const R& op, State* states, int64_t n, int64_t step) {
  for (int64_t distance = 1; distance < n; distance *= 2)
    for (int64_t i = 0; i + distance < n; i += 2 * distance)
      states[i * step] = op.merge(states[i * step], states[(i + distance) * step]);
}

// Partial results: memory of the caching allocator, none if n is 0.
template <class State>
class States {
  static_assert(std::is_trivially_copyable_v<State>);

 public:
  explicit States(int64_t n) : bytes_(std::size_t(n) * sizeof(State)) {
    if (n) data_ = static_cast<State*>(memory::allocate(bytes_));
  }
  States(const States&) = delete;
  States& operator=(const States&) = delete;
  ~States() {
    if (data_) memory::deallocate(data_, bytes_);
  }
  State* get() const { return data_; }

 private:
  std::size_t bytes_;
  State* data_ = nullptr;
};

template <class R, class T, class Out>
class Reduction {
  using C = compute_t<T>;
  using State = typename R::template State<C>;

 public:
  Reduction(const R& op, const ReducePlan& plan, const T* in, Out* out) : op_(op), plan_(plan), in_(in), out_(out) {}

  void run() const {
    if (outputs() == 0) return;
    if (plan_.count() == 0) return fill();
    if (across()) {
      reduce_across();
    } else {
      reduce_along();
    }
  }

 private:
  int64_t outputs() const { return plan_.kept.numel; }
  static State identity() { return R::template identity<C>(); }
  Out finish(const State& s) const { return cast<Out>(op_.finish(s, plan_.count())); }

  void fill() const {
    for (int64_t o = 0; o < outputs(); ++o) out_[o] = finish(identity());
  }

  // Whether neighbouring outputs, rather than the elements of one output, are neighbours in memory.
  bool across() const {
    const IndexSpace &kept = plan_.kept, &reduced = plan_.reduced;
    return kept.strides[1][kept.rank - 1] == 1 && kept.inner() > 1 && reduced.inner() > 1 &&
           reduced.strides[1][reduced.rank - 1] != 1;
  }

  // One output at a time, in chunks of its elements. Tasks go over all outputs before the next chunk: what lies side by
  // side in memory belongs to one thread, as it does where elements are mapped, and stays in its caches.
  void reduce_along() const {
    const int64_t n = plan_.count(), chunks = (n - 1) / reduce_chunk + 1;
    const int64_t grain = chunks > 1 ? map_grain / reduce_chunk : n < map_grain ? map_grain / n : 1;
    const States<State> states(chunks > 1 ? outputs() * chunks : 0);
    parallel_for(outputs() * chunks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t o = t % outputs(), first = t / outputs() * reduce_chunk;
        int64_t index[max_rank];
        plan_.kept.locate(o, index);
        const State s = chunk(plan_.kept.offset(1, index), first, n - first < reduce_chunk ? n - first : reduce_chunk);
        if (chunks == 1) {
          out_[o] = finish(s);
        } else {
          states.get()[o * chunks + t / outputs()] = s;
        }
      }
    });
    if (chunks == 1) return;
    for (int64_t o = 0; o < outputs(); ++o) {
      State* of_output = states.get() + o * chunks;
      merge_pairwise(op_, of_output, chunks, 1);
      out_[o] = finish(of_output[0]);
    }
  }

  // Elements [first, first + n) of the output whose elements begin at `offset`.
  State chunk(int64_t offset, int64_t first, int64_t n) const {
    const IndexSpace& space = plan_.reduced;
    const Array from = array_of(in_ + offset, space.strides[1]);
    const bool in_place = space.strides[1][space.rank - 1] == 1;
    State state = identity();
    if constexpr (std::is_same_v<C, T>) {
      if (in_place) {
        space.runs(1, first, n, [&](int64_t at, int64_t, int64_t count) {
          state = op_.merge(state, run_of(count, in_ + offset + at, first));
          first += count;
        });
        return state;
      }
    }
    Buffer buffer;
    for (int64_t done = 0; done < n; done += map_block) {
      int64_t index[max_rank];
      space.locate(first + done, index);
      const int64_t take = n - done < map_block ? n - done : map_block;
      const void* x = fetch(space, from, 1, space.dense[1], first + done, index, take, buffer);
      state = op_.merge(state, run_of(take, static_cast<const C*>(x), first + done));
    }
    return state;
  }

  State run_of(int64_t n, const C* x, int64_t first) const {
    if constexpr (requires { op_.block(n, x, first); }) {
      return op_.block(n, x, first);
    } else {
      return row_reduce(op_, n, x, first);
    }
  }

  // Many outputs at a time, row after row of their elements.
  void reduce_across() const {
    const int64_t n = plan_.count(), chunks = (n - 1) / reduce_rows + 1, width = plan_.kept.inner();
    const int64_t strips = (width - 1) / map_block + 1, lines = outputs() / width, tasks = lines * strips * chunks;
    const int64_t work = (n < reduce_rows ? n : reduce_rows) * (width < map_block ? width : map_block);
    const States<State> states(outputs() * chunks);
    parallel_for(tasks, work < map_grain ? map_grain / work : 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t strip = t % strips, c = t / strips % chunks, line = t / strips / chunks;
        const int64_t column = strip * map_block, first = c * reduce_rows, o = line * width + column;
        const int64_t columns = width - column < map_block ? width - column : map_block;
        const int64_t rows = n - first < reduce_rows ? n - first : reduce_rows;
        rows_of(o, columns, first, rows, states.get() + c * outputs() + o);
      }
    });
    for (int64_t o = 0; o < outputs(); ++o) {
      merge_pairwise(op_, states.get() + o, chunks, outputs());
      out_[o] = finish(states.get()[o]);
    }
  }

  // Elements [first, first + rows) of the outputs [o, o + columns).
  void rows_of(int64_t o, int64_t columns, int64_t first, int64_t rows, State* states) const {
    using Kernel = ReduceRows<R, C, State>;
    for (int64_t j = 0; j < columns; ++j) states[j] = identity();
    const IndexSpace& space = plan_.reduced;
    int64_t index[max_rank];
    plan_.kept.locate(o, index);
    const T* base = in_ + plan_.kept.offset(1, index);
    Buffer buffer;
    space.runs(1, first, rows, [&](int64_t at, int64_t stride, int64_t n) {
      if constexpr (std::is_same_v<C, T>) {
        run_reduction<Kernel, R, State>(&op_, states, columns, n, stride, base + at, first);
      } else {
        float* row = reinterpret_cast<float*>(buffer.values);
        for (int64_t i = 0; i < n; ++i) {
          convert(columns, row, base + at + i * stride);
          run_reduction<Kernel, R, State>(&op_, states, columns, int64_t{1}, int64_t{0}, static_cast<const C*>(row),
                                          first + i);
        }
      }
      first += n;
    });
  }

  const R& op_;
  const ReducePlan& plan_;
  const T* in_;
  Out* out_;
};

}  // namespace detail

/// out (contiguous, the kept dimensions in order) = the reduction `op` (see reducers.hpp) of `in` over the
/// dimensions whose bit is set in `reduced`. Half and bfloat16 are reduced in float. Of no elements, the result is
/// the reducer's identity. Throws ShapeError when rank > max_rank.
template <class R, class T, class Out>
void reduce(R op, int rank, const int64_t* shape, Strided<const T> in, uint32_t reduced, Out* out) {
  const detail::ReducePlan plan = detail::plan_reduction(rank, shape, in.strides, reduced, R::ordered);
  detail::Reduction<R, T, Out>(op, plan, in.data, out).run();
}

/// out[o][k][i] = sum of in[o][0..k][i] for contiguous arrays [outer, n, inner]. Accumulates in accumulate_t<In>.
template <class In, class Out>
void cumsum(int64_t outer, int64_t n, int64_t inner, const In* in, Out* out) {
  using A = accumulate_t<In>;
  const int64_t lines = outer * inner;
  parallel_for(lines, n < detail::map_grain ? detail::map_grain / (n > 0 ? n : 1) : 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t base = line / inner * n * inner + line % inner;
      A sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        sum = wrapping_add(sum, cast<A>(in[base + k * inner]));
        out[base + k * inner] = cast<Out>(sum);
      }
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
