// The weight of a layer, kept in one of several formats: dense, or one that costs less memory or time.
//
// A layer's type says nothing about the format: quantizing, pruning and loading a checkpoint change it at run time.
// A new format is one struct that derives from WeightFormat.
#pragma once

#include <tenet/nn/parameter.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/ops/conv2d.hpp>
#include <tenet/ops/matmul.hpp>

#include <memory>
#include <string_view>

namespace tenet::nn {

/// How the weight of a Linear [out, in] or a Conv2d [out, in / groups, kh, kw] is kept and multiplied, other than
/// dense. `parameter` is the layer's dense weight: formats that change it on the way to the product (a mask, fake
/// quantization, an adapter) leave it in place; those that replace it find it undefined.
template <class T>
struct WeightFormat {
  WeightFormat() = default;
  WeightFormat(const WeightFormat&) = default;
  WeightFormat& operator=(const WeightFormat&) = delete;
  virtual ~WeightFormat() = default;

  /// Stands in the names of its tensors: "fc1.weight.int8.values".
  virtual std::string_view name() const = 0;
  /// Shape of the weight it stands for.
  virtual Shape shape() const = 0;
  /// The weight it stands for; differentiable where the format trains.
  virtual Tensor<T> dense(const Tensor<T>& parameter) const = 0;
  /// A deep copy.
  virtual std::shared_ptr<WeightFormat> clone() const = 0;
  /// Adds its tensors; see slot().
  virtual void collect(const std::string& prefix, std::vector<StateSlot>& slots) = 0;
  /// Whether the layer's dense weight stays beside the format.
  virtual bool keeps_parameter() const { return false; }

  /// Whether its tensors can take the values of a state of this format as they are; else it is read anew. Throws Error
  /// where they make no sense.
  virtual bool fits([[maybe_unused]] const StateDict& part) const { return true; }

  /// linear() with this weight.
  virtual Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const {
    return tenet::linear(x, dense(parameter), bias);
  }
  /// conv2d() with this weight.
  virtual Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                           const tenet::Conv2dOptions& options) const {
    return tenet::conv2d(x, dense(parameter), bias, options);
  }

 protected:
  /// The slot of a Parameter or Buffer of the format, called `part` there.
  template <StateTensor P>
  StateSlot slot(const std::string& prefix, std::string_view part, P& tensor) const {
    return {text({prefix, ".", name(), ".", part}), &tensor, P::trains};
  }
};

/// The weight of a layer: a Parameter while it is dense.
template <class T = float>
class Weight : public Parameter<T> {
 public:
  TENET_TAG Weight() = default;
  TENET_TAG explicit Weight(Tensor<T> t) : Parameter<T>(std::move(t)) {}
  TENET_TAG Weight(Parameter<T> p) : Parameter<T>(std::move(p)) {}
  TENET_TAG Weight(const Weight& o)
      : Parameter<T>(static_cast<const Parameter<T>&>(o)), format_(o.format_ ? o.format_->clone() : nullptr) {}
  TENET_TAG Weight(Weight&&) noexcept = default;
  TENET_TAG Weight& operator=(Weight o) noexcept {
    Parameter<T>::operator=(std::move(static_cast<Parameter<T>&>(o)));
    format_ = std::move(o.format_);
    return *this;
  }

  /// The format; null while the weight is dense.
  TENET_TAG WeightFormat<T>* format() const { return format_.get(); }
  /// "dense", or the name of the format.
  TENET_TAG std::string_view format_name() const { return format_ ? format_->name() : "dense"; }
  /// Changes the format, and drops the parameter unless the format keeps it.
  TENET_TAG void set_format(std::shared_ptr<WeightFormat<T>> format) {
    if (format && !format->keeps_parameter()) Parameter<T>::operator=(Parameter<T>());
    format_ = std::move(format);
  }
  /// Shape of the weight, in any format.
  TENET_TAG Shape full_shape() const { return format_ ? format_->shape() : this->shape(); }
  /// The weight as a tensor, in any format.
  TENET_TAG Tensor<T> dense() const { return format_ ? format_->dense(*this) : static_cast<const Tensor<T>&>(*this); }

  TENET_TAG Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& bias) const {
    const Tensor<T>& w = *this;
    return format_ ? format_->linear(x, w, bias) : tenet::linear(x, w, bias);
  }
  TENET_TAG Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& bias, const tenet::Conv2dOptions& options) const {
    const Tensor<T>& w = *this;
    return format_ ? format_->conv2d(x, w, bias, options) : tenet::conv2d(x, w, bias, options);
  }

  /// Shares the weight of `o` from now on, as tied weights do.
  TENET_TAG TENET_COLD void tie(const Weight& o) {
    Parameter<T>::tie(o);
    format_ = o.format_;
  }
  TENET_TAG void zero_grad() const {
    Parameter<T>::zero_grad();
    if (!format_) return;
    std::vector<StateSlot> slots;
    format_->collect("", slots);
    for (const StateSlot& s : slots) {
      if (s.trains) s.tensor->zero_grad();
    }
  }
  TENET_TAG TENET_COLD void collect(const std::string& name, std::vector<StateSlot>& slots) {
    Parameter<T>::collect(name, slots);
    if (format_) format_->collect(name, slots);
  }

 private:
  std::shared_ptr<WeightFormat<T>> format_;
};

inline namespace TENET_CONFIG {

/// Gives weights the formats that a state stores them in; the old ones come back unless it is kept.
class FormatChanges {
 public:
  FormatChanges() = default;
  FormatChanges(const FormatChanges&) = delete;
  FormatChanges& operator=(const FormatChanges&) = delete;
  ~FormatChanges() {
    for (auto& [weight, old] : changed_) weight->tie(old);
  }
  void keep() { changed_.clear(); }

  TENET_COLD void follow(Weight<float>& weight, const std::string& name, const StateDict& dict,
                         const LoadOptions& options) {
    std::string_view stored;
    StateDict part;
    for (const auto& [key, tensor] : dict) {
      if (key == name && stored.empty()) stored = "dense";
      if (key.size() <= name.size() || !key.starts_with(name) || key[name.size()] != '.') continue;
      const std::size_t begin = name.size() + 1, end = key.find('.', begin);
      if (end == key.npos) continue;
      stored = std::string_view(key).substr(begin, end - begin);
      part.emplace_back(key.substr(end + 1), tensor);
    }
    if (stored.empty()) return;
    if (stored == weight.format_name() && (!weight.format() || weight.format()->fits(part))) return;
    for (const auto& [tied, old] : changed_) {
      if (!weight || !old.is(weight) || stored != tied->format_name()) continue;
      const Weight<float>& first = *tied;
      changed_.emplace_back(&weight, Weight<float>()).second.tie(weight);
      return weight.tie(first);
    }
    const Shape shape = weight.full_shape();
    std::shared_ptr<WeightFormat<float>> format;
    if (stored != "dense") {
      const WeightReader<>* reader = nullptr;
      for (const WeightReader<>& r : options.formats) {
        if (r.name == stored) reader = &r;
      }
      if (!reader) {
        throw Error(
            text({"load_state_dict: ", name, " is stored as ", stored, ", which is not among LoadOptions::formats"}));
      }
      format = reader->read(shape, part);
    }
    changed_.emplace_back(&weight, Weight<float>()).second.tie(weight);
    if (!weight && (!format || format->keeps_parameter())) weight = Weight<float>(empty<float>(shape));
    weight.set_format(std::move(format));
  }
  template <class T>
  void follow(Weight<T>&, const std::string&, const StateDict&, const LoadOptions&) {}  // always dense

 private:
  std::vector<std::pair<Weight<float>*, Weight<float>>> changed_;
};

template <class X>
struct is_weight : std::false_type {};
template <class T>
struct is_weight<Weight<T>> : std::true_type {};
template <class X>
concept IsWeight = is_weight<std::remove_cvref_t<X>>::value;

}  // namespace TENET_CONFIG
}  // namespace tenet::nn
