// The inner kernel of the 8-bit convolution. Included by for_each_isa.hpp.
#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

// M channels times the pixels of some tiles, as conv_tiles, in units: A of the weights, B of the image.
template <class A, class B, int M>
TENET_KERNEL_TARGET TENET_NOINLINE void conv_unit_tiles(const ConvTiles<std::uint32_t>& t) {
  using T = std::uint32_t;
  constexpr int n = 2, parts = runs<T>;
  const int64_t weights_step = t.weights_step;
  const int64_t *const offsets = t.offsets, *const offsets_end = offsets + t.taps;
  for (int64_t tile = 0; tile < t.tiles; ++tile) {
    Vector<T> sum[M][n];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) sum[i][j] = Vector<T>{};
    }
    const T *in[n * parts], *weights = t.weights;
#pragma GCC unroll 4
    for (int r = 0; r < n * parts; ++r) in[r] = t.image + t.from[tile * n * parts + r];
#pragma GCC unroll 1
    for (const int64_t* offset = offsets; offset != offsets_end; ++offset) {
      Vector<T> v[n];
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) {
        v[j] = load_runs<T>(in + j * parts, *offset);
        hold<T>(v[j]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const A scale{weights[i]};
#pragma GCC unroll 2
        for (int j = 0; j < n; ++j) add_scaled<A, B>(sum[i][j], scale, v[j]);
      }
      weights += weights_step;
    }
    store_tile<T, M>(t, tile, sum);
  }
}

template <class A>
std::uint32_t gather_bits(const int8_t* from, int64_t step, int64_t left) {
  return gather_unit<A>(from, step, left).bits;
}

template <class A, class B, int height>
constexpr auto conv_unit_tiles_of() -> void (*)(const ConvTiles<std::uint32_t>&) {
  if constexpr ((tile_heights >> (height - 1) & 1) != 0) return conv_unit_tiles<A, B, height>;
  return nullptr;
}

template <class A, class B, int... i>
constexpr ConvUnitKernels make_conv_unit_kernels(std::integer_sequence<int, i...>) {
  return {lanes<std::uint32_t>, run_lanes<std::uint32_t>, unit_depth<A>,
          32 / unit_depth<A>,   {tile_heights},           {conv_unit_tiles_of<A, B, i + 1>()...},
          &gather_bits<A>};
}

template <class A, class B>
inline constexpr ConvUnitKernels conv_unit_kernels =
    make_conv_unit_kernels<A, B>(std::make_integer_sequence<int, TileHeights::most>{});

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
