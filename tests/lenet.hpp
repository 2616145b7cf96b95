// The network that tests of training have in common.
#pragma once

#include <tenet/nn/nn.hpp>

namespace tenet::test {

struct LeNet : nn::Module<LeNet> {
  nn::Conv2d<> conv1{1, 20, 5}, conv2{20, 50, 5};
  nn::MaxPool2d pool{2, 2};
  nn::Linear<> fc1{50 * 4 * 4, 500}, fc2{500, 10};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  Tensor<float> forward(Tensor<float> x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = x.view({-1, 50 * 4 * 4});
    x = relu(fc1(x));
    return fc2(x);
  }
};

}  // namespace tenet::test
