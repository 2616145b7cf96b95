// The network: two convolutions with pooling, two fully connected layers.
#pragma once

#include <tenet/tenet.hpp>

struct LeNet : tenet::nn::Module<LeNet> {
  tenet::nn::Conv2d<> conv1{1, 20, 5}, conv2{20, 50, 5};
  tenet::nn::MaxPool2d pool{2, 2};
  tenet::nn::Linear<> fc1{50 * 4 * 4, 500}, fc2{500, 10};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  auto forward(auto x) {  // of a tensor, or of integers: a quant::Activation
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = relu(fc1(flatten(x, 1)));  // of any number of channels
    return fc2(x);
  }
};
