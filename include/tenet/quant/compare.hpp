// What quantization costs and saves: the error of each layer's output, the size of its weight, and its time.
#pragma once

#include <tenet/nn/summary.hpp>

#include <cmath>
#include <ctime>

namespace tenet::quant {

/// One layer of two models.
struct LayerComparison {
  std::string name, format;          ///< the whole model has no name
  std::int64_t bytes = 0;            ///< of the weight as it is kept
  std::int64_t reference_bytes = 0;  ///< of the other model's
  double sqnr = 0;  ///< of the outputs, in dB: signal to quantization noise; infinite if they are equal
  double seconds = 0, reference_seconds = 0;  ///< that the layer took, and the other model's, for all the data
};

template <class T = LayerComparison>
struct Comparison {
  std::vector<T> layers;  ///< those with a weight
  T total;                ///< of the whole state, the model's output and its time
  /// A table.
  TENET_TAG std::string str() const;
};

inline namespace TENET_CONFIG {

namespace detail {

/// Seconds on the wall. <chrono> would cost every program time to compile.
inline double now() {
  std::timespec t;
  std::timespec_get(&t, TIME_UTC);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Keeps what each module call of a forward gave, and the seconds that it took.
template <class Result = AnyTensor>
struct OutputObserver final : nn::CallObserver {
  struct Call {
    const void* module;
    Result result;
    double seconds;
  };
  std::vector<Call> calls;
  std::vector<std::pair<const void*, double>> begun;  // calls that are not over, and when they began
  nn::CallObserver* outer = std::exchange(state::call_observer, this);

  OutputObserver() = default;
  OutputObserver(const OutputObserver&) = delete;
  OutputObserver& operator=(const OutputObserver&) = delete;
  ~OutputObserver() { state::call_observer = outer; }
  void calling(const void* module, AnyTensor*, std::size_t) override { begun.emplace_back(module, now()); }
  void called(const void* module, AnyTensor& result) override {
    const double end = now();
    while (begun.back().first != module) begun.pop_back();  // calls that ended by an exception
    if (result) calls.push_back({module, result, end - begun.back().second});
    begun.pop_back();
  }
};

/// A module with its name in the model, and its weight's format and size.
struct NamedModule {
  const void* address;
  std::string name, format;
  std::int64_t bytes;
};

inline std::int64_t bytes_of(const std::vector<nn::StateSlot>& slots) {
  std::int64_t sum = 0;
  for (const nn::StateSlot& s : slots) sum += s.tensor->numel() * std::int64_t(item_size(s.tensor->dtype()));
  return sum;
}

template <class M>
std::vector<NamedModule> named_modules(M& model) {
  std::vector<NamedModule> all;
  model.each_module([&]<class X>(const std::string& name, X& m) {
    if constexpr (requires { m.weight.format_name(); }) {
      std::vector<nn::StateSlot> slots;
      m.weight.collect("", slots);
      all.push_back({&m, name, std::string(m.weight.format_name()), bytes_of(slots)});
    } else if (name.empty()) {
      all.push_back({&m, name, "", 0});
    }
  });
  all.back().bytes = bytes_of(model.state_slots());  // the model itself comes last
  return all;
}

/// Sums of squares: of the outputs of one model, and of their differences from the other's.
template <class T = double>
struct Noise {
  T signal = 0, noise = 0;

  void add(const AnyTensor& reference, const AnyTensor& other) {
    if (reference.dtype() != DType::float32 || other.dtype() != DType::float32) return;
    if (!(reference.shape() == other.shape())) {
      throw ShapeError(text({"compare: outputs of shapes ", reference.shape(), " and ", other.shape()}));
    }
    const Tensor<float> x = packed(Tensor<float>(reference)), y = packed(Tensor<float>(other));
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double v = x.data()[i], d = v - double(y.data()[i]);
      signal += v * v, noise += d * d;
    }
  }
  double decibels() const {
    return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  }
};

/// Runs a model on a batch, in evaluation mode, and keeps what its modules gave.
template <class M, class X>
auto outputs(M& model, const X& x) {
  std::vector<nn::ModuleSlot> modules;
  model.collect_modules("", 0, modules);
  const nn::detail::EvaluationScope evaluation(modules);
  const no_grad guard;
  OutputObserver<> observer;
  model(x);
  return std::move(observer.calls);
}

template <class T>
std::string comparison_table(const Comparison<T>& c) {
  std::vector<T> rows = c.layers;
  rows.push_back(c.total);
  std::size_t width = 5;
  for (const T& r : rows) width = std::max(width, r.name.size());
  std::string out =
      nn::detail::padded("layer", width) + "  format             bytes  of float  SQNR dB         ms  float ms\n";
  for (const T& r : rows) {
    char line[128];
    const double part = r.reference_bytes ? 100.0 * double(r.bytes) / double(r.reference_bytes) : 0;
    std::snprintf(line, sizeof line, "  %-12s %11lld  %7.1f%%  %7.1f  %9.3f %9.3f\n", r.format.substr(0, 12).c_str(),
                  static_cast<long long>(r.bytes), part, r.sqnr, 1e3 * r.seconds, 1e3 * r.reference_seconds);
    out += nn::detail::padded(r.name.empty() ? "model" : r.name, width) + line;
  }
  return out;
}

}  // namespace detail

/// Runs two models of one type on the batches of `data`, tensors or pairs that begin with one, in evaluation mode, and
/// compares the outputs of their layers, and their times: each layer of `quantized` works on what the layers before it
/// gave. Throws Error for models of different layers, ShapeError for outputs of different shapes. See
/// torch.ao.ns._numeric_suite.
template <nn::IsModule M, class Data>
Comparison<> compare(M& reference, M& quantized, Data&& data) {
  const std::vector<detail::NamedModule> a = detail::named_modules(reference), b = detail::named_modules(quantized);
  if (a.size() != b.size()) {
    throw Error(text({"compare: expected models of as many layers, got ", a.size() - 1, " and ", b.size() - 1}));
  }
  Comparison<> result;
  for (std::size_t m = 0; m < a.size(); ++m) {
    LayerComparison& row = m + 1 < a.size() ? result.layers.emplace_back() : result.total;
    row.name = a[m].name, row.format = b[m].format;
    row.bytes = b[m].bytes, row.reference_bytes = a[m].bytes;
  }
  std::vector<detail::Noise<>> noise(a.size());
  bool first = true;
  const auto run = [&](const auto& x) {
    if (std::exchange(first, false)) {  // what is prepared once is not timed
      detail::outputs(reference, x);
      detail::outputs(quantized, x);
    }
    const auto x_calls = detail::outputs(reference, x), y_calls = detail::outputs(quantized, x);
    for (std::size_t i = 0; i < std::min(x_calls.size(), y_calls.size()); ++i) {
      for (std::size_t m = 0; m < a.size(); ++m) {
        if (a[m].address != x_calls[i].module || b[m].address != y_calls[i].module) continue;
        LayerComparison& row = m < result.layers.size() ? result.layers[m] : result.total;
        noise[m].add(x_calls[i].result, y_calls[i].result);
        row.reference_seconds += x_calls[i].seconds, row.seconds += y_calls[i].seconds;
      }
    }
  };
  for (auto&& batch : data) {
    if constexpr (TensorLike<decltype(batch)>) {
      run(batch);
    } else {
      auto&& [inputs, targets] = batch;
      run(inputs);
    }
  }
  for (std::size_t m = 0; m < result.layers.size(); ++m) result.layers[m].sqnr = noise[m].decibels();
  result.total.sqnr = noise.back().decibels();
  return result;
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG std::string Comparison<T>::str() const {
  return detail::comparison_table(*this);
}

}  // namespace tenet::quant
