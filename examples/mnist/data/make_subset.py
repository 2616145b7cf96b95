#!/usr/bin/env python3
"""make_subset.py FOLDER: writes the digits of this folder from the whole MNIST in FOLDER.

FOLDER holds the four files of MNIST, gzip'd. Of each digit, 600 of the training and 100 of the test images
are taken at equal distances through the file, and they stay in its order. The same input gives the same bytes.
"""
import gzip
import pathlib
import struct
import sys

UINT8 = 8  # the element type's code in an IDX file


def read_idx(path, rank):
    """The sizes and the elements of an IDX file of uint8."""
    data = gzip.decompress(path.read_bytes())
    if data[:4] != bytes([0, 0, UINT8, rank]):
        sys.exit(f"{path}: not an IDX file of uint8 with {rank} dimensions")
    start = 4 + 4 * rank
    return struct.unpack(f">{rank}I", data[4:start]), data[start:]


def write_idx(path, sizes, elements):
    header = bytes([0, 0, UINT8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes)
    path.write_bytes(gzip.compress(header + elements, 9, mtime=0))


def write_subset(source, target, part, per_digit):
    (_, rows, columns), pixels = read_idx(source / f"{part}-images-idx3-ubyte.gz", 3)
    _, labels = read_idx(source / f"{part}-labels-idx1-ubyte.gz", 1)
    chosen = []
    for digit in range(10):
        places = [i for i, label in enumerate(labels) if label == digit]
        chosen += [places[k * len(places) // per_digit] for k in range(per_digit)]
    chosen.sort()
    size = rows * columns
    images = b"".join(pixels[i * size : (i + 1) * size] for i in chosen)
    write_idx(target / f"{part}-images-idx3-ubyte.gz", (len(chosen), rows, columns), images)
    write_idx(target / f"{part}-labels-idx1-ubyte.gz", (len(chosen),), bytes(labels[i] for i in chosen))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parent
    write_subset(pathlib.Path(sys.argv[1]), here, "train", 600)
    write_subset(pathlib.Path(sys.argv[1]), here, "t10k", 100)
