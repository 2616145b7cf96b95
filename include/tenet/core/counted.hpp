// Reference counts inside the objects they count, and the pointer that keeps them.
#pragma once

#include <tenet/core/config.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

namespace tenet {

/// A count of owners, 1 at birth.
class Count {
 public:
  TENET_TAG void add() { n_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops one owner; true for the last. A sole owner needs no atomic subtraction: there are no weak
  /// references, so nobody else can take a new one.
  TENET_TAG bool drop() { return unique() || n_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  TENET_TAG bool unique() const { return n_.load(std::memory_order_acquire) == 1; }
  TENET_TAG std::uint32_t value() const { return n_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> n_{1};
};

/// Owns one reference to an X, which has a `Count count` and a `void destroy()`.
template <class X>
class Ref {
 public:
  TENET_TAG Ref() = default;
  TENET_TAG Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->count.add();
  }
  TENET_TAG Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  TENET_TAG Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  TENET_TAG ~Ref() {
    if (p_) let_go(p_);
  }

  /// Takes over a reference that the caller owns.
  TENET_TAG static Ref adopt(X* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  /// Adds a reference of its own.
  TENET_TAG static Ref share(X* p) {
    if (p) p->count.add();
    return adopt(p);
  }
  /// Hands the reference to the caller.
  TENET_TAG X* release() { return std::exchange(p_, nullptr); }

  TENET_TAG X* get() const { return p_; }
  TENET_TAG X* operator->() const { return p_; }
  TENET_TAG X& operator*() const { return *p_; }
  TENET_TAG explicit operator bool() const { return p_ != nullptr; }

 private:
  // Out of line: handles die everywhere, and this would be most of the code there.
  TENET_TAG TENET_NOINLINE static void let_go(X* p) {
    if (p->count.drop()) p->destroy();
  }
  X* p_ = nullptr;
};

}  // namespace tenet
