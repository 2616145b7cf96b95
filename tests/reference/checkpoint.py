"""Weights that travel between PyTorch and tenet through safetensors files.

checkpoint.py make                  writes checkpoint.safetensors (a small LeNet) and checkpoint_logits.safetensors
                                    (an input and its logits) beside itself
checkpoint.py check MODEL LOGITS    compares the logits that tenet wrote with those of PyTorch for the same weights;
                                    exit status 77 without PyTorch or safetensors
"""

import pathlib
import sys

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(error)
    sys.exit(77)


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 4, 3)
        self.conv2 = torch.nn.Conv2d(4, 6, 3)
        self.fc1 = torch.nn.Linear(6 * 2 * 2, 8)
        self.fc2 = torch.nn.Linear(8, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def make():
    here = pathlib.Path(__file__).resolve().parent
    torch.manual_seed(0)
    model, x = LeNet(), torch.randn(5, 1, 14, 14)
    save_file(model.state_dict(), here / "checkpoint.safetensors", metadata={"format": "pt"})
    with torch.no_grad():
        save_file({"input": x, "logits": model(x)}, here / "checkpoint_logits.safetensors")


def check(model_file, logits_file):
    model, expected = LeNet(), load_file(logits_file)
    model.load_state_dict(load_file(model_file))
    with torch.no_grad():
        difference = (model(expected["input"]) - expected["logits"]).abs().max().item()
    print(f"largest difference {difference}")
    return 0 if difference <= 1e-5 else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2], sys.argv[3]))
    else:
        sys.exit(__doc__)
