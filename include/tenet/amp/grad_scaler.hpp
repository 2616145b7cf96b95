// Scaling of the loss, so that small gradients survive half precision:
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);  // not taken if a gradient is infinite or NaN
//   scaler.update();
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/kernels/cpu/unscale.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/copy.hpp>

#include <cmath>

namespace tenet::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool enabled = true;
};

inline namespace TENET_CONFIG {
namespace detail {

/// Multiplies the gradient of `p` in place; whether it is finite then.
inline bool unscale_gradient(const AnyTensor& p, double factor) {
  if (p.dtype() == DType::float16) {
    throw DTypeError("GradScaler: expected gradients of float, got float16: keep the parameters in float");
  }
  bool finite = true;
  dispatch_floating("GradScaler", p.dtype(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, half>) {
      Tensor<T> g(p.grad_any());
      if (!g.is_contiguous() || !g.impl()->storage->count.unique()) {  // its memory may be that of others
        g = clone(detach(g));
        p.impl()->grad = g.ref();
      }
      finite = cpu::unscale(g.numel(), g.data(), factor);
      ++g.impl()->storage->version;
    }
  });
  return finite;
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// Multiplies losses by a scale and divides gradients by it again. A step whose gradients are not finite is left out,
/// and the scale is multiplied by backoff_factor; after growth_interval good updates in a row it is multiplied by
/// growth_factor, unless that is not finite. See torch.amp.GradScaler, whose states and errors these are. For bfloat16,
/// which has the range of float, it is not needed.
class GradScaler {
 public:
  /// Throws Error unless growth_factor > 1, 0 < backoff_factor < 1, init_scale > 0 and growth_interval >= 1.
  TENET_TAG explicit GradScaler(const GradScalerOptions& options = {}) : options_(options) {
    check(options);
    scale_ = float(options.init_scale);
  }

  /// `outputs` times the scale.
  template <TensorLike X>
  tensor_t<X> scale(const X& outputs) const {
    if (!options_.enabled) return outputs;
    return mul(static_cast<const tensor_t<X>&>(outputs), tenet::scalar(element_t<X>(scale_)));
  }

  /// Divides the gradients of an optimizer by the scale, to be clipped before step(). Throws Error the second time
  /// before update(), and DTypeError for gradients of half, which would lose what the scale saved.
  template <class O>
  void unscale_(O& optimizer) {
    if (!options_.enabled) return;
    Seen& seen = find(&optimizer);
    if (seen.stage == Stage::unscaled) {
      throw Error("GradScaler: unscale_() was called before on this optimizer since the last update()");
    }
    if (seen.stage == Stage::stepped) throw Error("GradScaler: unscale_() was called after step()");
    const double factor = 1 / double(scale_);
    for (const AnyTensor& p : optimizer.parameters()) {
      if (!p.impl()->grad) continue;
      const bool finite = detail::unscale_gradient(p, factor);
      seen.checked = true;
      seen.finite = seen.finite && finite;
    }
    seen.stage = Stage::unscaled;
  }

  /// unscale_(), unless that was done, and optimizer.step() if all gradients are finite; whether it was taken. Throws
  /// Error the second time before update(), and if no parameter has a gradient.
  template <class O>
  bool step(O& optimizer) {
    if (options_.enabled) {
      if (find(&optimizer).stage == Stage::stepped) {
        throw Error("GradScaler: step() was called before on this optimizer since the last update()");
      }
      if (find(&optimizer).stage == Stage::ready) unscale_(optimizer);
      Seen& seen = find(&optimizer);
      if (!seen.checked) throw Error("GradScaler: no parameter of the optimizer has a gradient");
      seen.stage = Stage::stepped;
      if (!seen.finite) return false;
    }
    optimizer.step();
    return true;
  }

  /// Adjusts the scale, after the steps of all optimizers. Throws Error if there was none since the last update.
  TENET_TAG void update() {
    if (!options_.enabled) return;
    bool checked = false, finite = true;
    for (const Seen& seen : seen_) {
      checked = checked || seen.checked;
      finite = finite && seen.finite;
    }
    if (!checked) throw Error("GradScaler: update() expects step() or unscale_() before");
    if (!finite) {
      scale_ = float(scale_ * options_.backoff_factor);
      good_ = 0;
    } else if (++good_ == options_.growth_interval) {
      const float grown = float(scale_ * options_.growth_factor);
      if (std::isfinite(grown)) scale_ = grown;
      good_ = 0;
    }
    seen_.clear();
  }
  /// Sets the scale instead. Throws Error unless it is positive and finite.
  TENET_TAG void update(double new_scale) {
    check_scale(new_scale);
    if (!options_.enabled) return;
    scale_ = float(new_scale);
    seen_.clear();
  }

  /// The scale; 1 when disabled.
  TENET_TAG double get_scale() const { return options_.enabled ? scale_ : 1; }
  TENET_TAG bool is_enabled() const { return options_.enabled; }
  TENET_TAG const GradScalerOptions& options() const { return options_; }

  /// The whole state by name: "scaler.scale", "scaler.growth_tracker", ...; empty when disabled. It fits into
  /// TrainingProgress::extra.
  TENET_TAG nn::StateDict state_dict() const {
    if (!options_.enabled) return {};
    return {{"scaler.scale", scalar(scale_)},
            {"scaler.growth_factor", scalar(options_.growth_factor)},
            {"scaler.backoff_factor", scalar(options_.backoff_factor)},
            {"scaler.growth_interval", scalar(options_.growth_interval)},
            {"scaler.growth_tracker", scalar(good_)}};
  }
  /// Takes over such a state, and leaves other names alone. Throws Error if it is not one; nothing is changed then.
  TENET_TAG void load_state_dict(const nn::StateDict& dict) {
    if (!options_.enabled) return;
    GradScalerOptions options = options_;
    options.init_scale = number<float>(dict, "scaler.scale");
    options.growth_factor = number<double>(dict, "scaler.growth_factor");
    options.backoff_factor = number<double>(dict, "scaler.backoff_factor");
    options.growth_interval = number<std::int64_t>(dict, "scaler.growth_interval");
    const std::int64_t good = number<std::int64_t>(dict, "scaler.growth_tracker");
    check(options);
    if (good < 0) throw Error(text({"GradScaler: expected a growth_tracker >= 0, got ", good}));
    scale_ = float(options.init_scale);
    good_ = good;
    options.init_scale = options_.init_scale;
    options_ = options;
  }

 private:
  enum class Stage { ready, unscaled, stepped };
  /// An optimizer since the last update.
  struct Seen {
    const void* optimizer;
    Stage stage = Stage::ready;
    bool checked = false, finite = true;
  };

  TENET_TAG Seen& find(const void* optimizer) {
    for (Seen& seen : seen_) {
      if (seen.optimizer == optimizer) return seen;
    }
    return seen_.emplace_back(Seen{optimizer});
  }
  TENET_TAG static void check_scale(double scale) {
    if (!(scale > 0) || !std::isfinite(float(scale))) {
      throw Error(text({"GradScaler: expected a scale that is positive and finite, got ", scale}));
    }
  }
  TENET_TAG static void check(const GradScalerOptions& o) {
    check_scale(o.init_scale);
    if (!(o.growth_factor > 1) || !(o.backoff_factor > 0 && o.backoff_factor < 1)) {
      throw Error(text({"GradScaler: expected growth_factor > 1 and backoff_factor in (0, 1), got ", o.growth_factor,
                        " and ", o.backoff_factor}));
    }
    if (o.growth_interval < 1) {
      throw Error(text({"GradScaler: expected growth_interval >= 1, got ", o.growth_interval}));
    }
  }
  template <class T>
  static T number(const nn::StateDict& dict, const char* key) {
    if (const AnyTensor* t = nn::detail::find(dict, key)) return Tensor<T>(*t).item();
    throw Error(text({"GradScaler: the state has no ", key}));
  }

  GradScalerOptions options_;
  float scale_;
  std::int64_t good_ = 0;  // updates in a row
  std::vector<Seen> seen_;
};

}  // namespace tenet::amp
