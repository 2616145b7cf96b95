// The network that tests of training have in common.
#pragma once

#include <tenet/nn/nn.hpp>

namespace tenet::test {

template <class T = float>
struct LeNet : nn::Module<LeNet<T>> {
  nn::Conv2d<T> conv1{1, 20, 5}, conv2{20, 50, 5};
  nn::MaxPool2d pool{2, 2};
  nn::Linear<T> fc1{50 * 4 * 4, 500}, fc2{500, 10};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  Tensor<T> forward(Tensor<T> x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = x.view({-1, 50 * 4 * 4});
    x = relu(fc1(x));
    return fc2(x);
  }
};

}  // namespace tenet::test
