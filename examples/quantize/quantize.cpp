// The linear layers of a model in 8 bits, a scheme of its own for each layer, and integers from layer to layer.
#include <tenet/tenet.hpp>

#include <cstdio>

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Linear<> fc1{784, 512}, fc2{512, 512}, fc3{512, 10};
  TENET_MODULE(fc1, fc2, fc3)

  auto forward(auto x) { return fc3(relu(fc2(relu(fc1(x))))); }
};

int main() {
  Net model;
  auto data = randn({64, 784});

  auto int8 = quant::quantize_dynamic<nn::Linear>(model);
  auto y = int8(data);

  auto mixed = quant::quantize_weights<nn::Linear>(model, {.bits = 4, .names = {"fc2"}});
  quant::quantize_dynamic_<nn::Linear>(mixed, {.per_channel = true});  // the others

  const std::vector batches{data};
  auto integers = quant::quantize_static<nn::Linear>(model, batches);
  y = integers(quant::Activation(data)).dequantize();

  for (Net* quantized : {&int8, &mixed, &integers}) {
    std::printf("%s\n", quant::compare(model, *quantized, batches).str().c_str());
  }
}
