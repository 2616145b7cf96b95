// Compiled once for each combination of flags; SIDE names the table it defines.
#include "side.hpp"

using namespace tenet;

namespace {

Tensor<float> make(std::uint64_t seed, Shape shape) {
  manual_seed(seed);
  return randn<float>(shape);
}

Tensor<float> loss(Tensor<float> x, Tensor<float> weight) {
  const Tensor<float> y = relu(matmul(x, weight));
  return mean(y * y + exp(-y));
}

void backward(Tensor<float> loss) { loss.backward(); }

void drop(Tensor<float> last) { last = {}; }

bool without_grad(bool (*f)()) {
  no_grad guard;
  return f();
}

bool records() { return is_grad_enabled(); }

void fail() { matmul(zeros<float>({2, 3}), zeros<float>({2, 3})); }

bool catches(void (*f)()) {
  try {
    f();
  } catch (const ShapeError&) {
    return true;
  } catch (...) {
  }
  return false;
}

}  // namespace

#define SIDE_TEXT_(x) #x
#define SIDE_TEXT(x) SIDE_TEXT_(x)
extern const Side SIDE;
const Side SIDE{SIDE_TEXT(SIDE), make, loss, backward, drop, without_grad, records, fail, catches};
