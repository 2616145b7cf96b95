// A table of a model's layers: their output shapes and parameter counts.
#pragma once

#include <tenet/nn/module.hpp>

#include <algorithm>

namespace tenet::nn {
inline namespace TENET_CONFIG {

namespace detail {

/// Collects what each module call of a forward gave.
struct ShapeObserver final : CallObserver {
  struct Call {
    const void* module;
    std::string shape;
  };
  std::vector<Call> calls;
  CallObserver* outer = std::exchange(state::call_observer, this);

  ~ShapeObserver() { state::call_observer = outer; }
  void called(const void* module, AnyTensor& result) override {
    if (result) calls.push_back({module, result.shape().str()});
  }
  /// "[8, 20, 24, 24]"; every shape of a module that was called more than once.
  std::string shapes(const void* module) const {
    std::string all;
    for (const Call& c : calls) {
      if (c.module == module) all += (all.empty() ? "" : ", ") + c.shape;
    }
    return all.empty() ? "-" : all;
  }
};

/// 431080 as "431,080".
inline std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3;) s.insert(i -= 3, 1, ',');
  return s;
}

inline std::string padded(std::string s, std::size_t width, bool right = false) {
  const std::string space(width > s.size() ? width - s.size() : 0, ' ');
  return right ? space + s : s + space;
}

inline std::string table(const std::vector<ModuleSlot>& modules, const ShapeObserver& seen,
                         const std::vector<AnyTensor>& parameters) {
  std::vector<std::array<std::string, 3>> rows = {{"layer", "output", "parameters"}};
  for (const ModuleSlot& m : modules) {
    std::string label(std::size_t(2 * m.depth), ' ');
    label += m.name.empty() ? "" : m.name + ": ";
    label += m.type;
    rows.push_back({label, seen.shapes(m.address), m.parameters || m.leaf ? grouped(m.parameters) : ""});
  }
  std::size_t width[3] = {};
  for (const auto& r : rows) {
    for (int c = 0; c < 3; ++c) width[c] = std::max(width[c], r[c].size());
  }
  const std::string line(width[0] + width[1] + width[2] + 4, '-');
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out +=
        padded(rows[i][0], width[0]) + "  " + padded(rows[i][1], width[1]) + "  " + padded(rows[i][2], width[2], true);
    out.erase(out.find_last_not_of(' ') + 1);
    out += i == 0 ? "\n" + line + "\n" : "\n";
  }
  std::int64_t total = 0, frozen = 0, bytes = 0;
  for (const AnyTensor& p : parameters) {
    total += p.numel();
    if (!p.requires_grad()) frozen += p.numel();
    bytes += p.numel() * std::int64_t(item_size(p.dtype()));
  }
  out += line + "\n" + grouped(total) + " parameters, " + grouped(bytes) + " bytes";
  if (frozen) out += "; " + grouped(frozen) + " of them frozen";
  return out + "\n";
}

/// Evaluation mode for modules while it lives; each has its own mode back afterwards.
class EvaluationScope {
 public:
  explicit EvaluationScope(const std::vector<ModuleSlot>& modules) : modules_(modules) {
    for (const ModuleSlot& m : modules) before_.push_back(std::exchange(*m.training, false));
  }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;
  ~EvaluationScope() {
    for (std::size_t i = 0; i < modules_.size(); ++i) *modules_[i].training = before_[i];
  }

 private:
  const std::vector<ModuleSlot>& modules_;
  std::vector<bool> before_;
};

}  // namespace detail

/// Runs `model` on `inputs` in evaluation mode, unrecorded, and lists its modules with the shapes they gave and the
/// parameters they own. Tied parameters count once in the total.
template <class M, class... In>
std::string summary(M& model, const In&... inputs) {
  std::vector<ModuleSlot> modules;
  model.collect_modules("", 0, modules);
  const detail::EvaluationScope evaluation(modules);
  detail::ShapeObserver seen;
  const no_grad guard;
  model(inputs...);
  return detail::table(modules, seen, model.parameters());
}

}  // namespace TENET_CONFIG
}  // namespace tenet::nn
