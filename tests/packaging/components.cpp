// Linked to the program where the project asks for the optional parts.
#include <tenet/data/gzip.hpp>
#include <tenet/io/safetensors.hpp>

// A file that does not exist is refused by either reader.
bool components_work() {
  int refused = 0;
  try {
    tenet::data::GzipFile("no such file");
  } catch (const tenet::Error&) {
    ++refused;
  }
  try {
    tenet::load_tensors("no such file");
  } catch (const tenet::Error&) {
    ++refused;
  }
  return refused == 2;
}
