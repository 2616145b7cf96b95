// Runs a test with each instruction set this machine has.
#pragma once

#include <tenet/kernels/cpu/isa.hpp>

#include <gtest/gtest.h>

// Where the 64-byte kernels are compiled for AVX2, they run on any machine that has that.
#ifdef TENET_WIDE_VECTORS_ON_AVX2
inline constexpr bool wide_on_avx2 = true;
#else
inline constexpr bool wide_on_avx2 = false;
#endif

template <class F>
void for_each_isa(const F& test) {
  using namespace tenet::cpu;
  const Isa machine = machine_isa(), before = isa();
  for (Isa wanted : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (wanted > machine && !(wide_on_avx2 && machine == Isa::avx2)) continue;
    tenet::state::isa = int(wanted);
    SCOPED_TRACE(wanted == Isa::baseline ? "baseline" : wanted == Isa::avx2 ? "avx2" : "avx512");
    test();
  }
  tenet::state::isa = int(before);
}

// The same with and without each instruction of cpu::Dots that goes with it.
template <class F>
void for_each_isa_and_dots(const F& test) {
  using namespace tenet::cpu;
  for_each_isa([&] {
    set_dots(0);
    test();
    if (isa() == Isa::avx512 && machine_dots() != 0) {
      SCOPED_TRACE("with dots");
      set_dots(machine_dots());
      test();
    }
  });
  set_dots(machine_dots());
}
