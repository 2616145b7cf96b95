// A communicator's ranks as a grid, for training that combines ways to divide the work.
//   parallel::Mesh mesh(comm, {.data = 2, .tensor = 2});
//   parallel::ColumnParallelLinear fc(mesh.tensor, 800, 500);
//   parallel::DistributedDataParallel ddp(model, mesh.data);
#pragma once

#include <tenet/parallel/communicator.hpp>

namespace tenet::parallel {

struct MeshOptions {
  int data = 1;      ///< copies of the model, each with its part of the batch
  int pipeline = 1;  ///< stages that a model is cut into
  int tensor = 1;    ///< ranks that share the layers of a stage
};

/// Three communicators for each rank: of those that differ from it in only that coordinate. Rank r stands at
/// r = (data * options.pipeline + pipeline) * options.tensor + tensor: those that talk most are neighbours.
template <Communicator C>
class Mesh {
 public:
  /// Of all ranks at once. Throws Error unless the options agree and their product is comm.size().
  TENET_TAG Mesh(C& comm, const MeshOptions& options) : Mesh(comm, options, coordinates(comm, options)) {}

  C data, pipeline, tensor;

 private:
  TENET_TAG Mesh(C& comm, const MeshOptions& o, const MeshOptions& at)
      : data(comm.split(at.pipeline * o.tensor + at.tensor, at.data, "mesh.data")),
        pipeline(comm.split(at.data * o.tensor + at.tensor, at.pipeline, "mesh.pipeline")),
        tensor(comm.split(at.data * o.pipeline + at.pipeline, at.tensor, "mesh.tensor")) {}

  TENET_TAG static MeshOptions coordinates(C& comm, const MeshOptions& o) {
    std::vector<MeshOptions> all(static_cast<std::size_t>(comm.size()));
    comm.all_gather(&o, all.data(), sizeof o, "mesh");
    for (int r = 0; r < comm.size(); ++r) {
      const MeshOptions &a = all[0], &b = all[std::size_t(r)];
      if (a.data == b.data && a.pipeline == b.pipeline && a.tensor == b.tensor) continue;
      throw Error(text({"mesh: rank ", comm.world_rank(0), " has ", describe(a), ", rank ", comm.world_rank(r), " has ",
                        describe(b)}));
    }
    const auto within = [&](int n) { return n >= 1 && n <= comm.size(); };
    if (!within(o.data) || !within(o.pipeline) || !within(o.tensor) ||
        std::int64_t(o.data) * o.pipeline * o.tensor != std::int64_t(comm.size())) {
      throw Error(text({"mesh: expected data x pipeline x tensor = ", comm.size(), " ranks, got ", describe(o)}));
    }
    const int r = comm.rank(), inner = o.pipeline * o.tensor;
    return {r / inner, r % inner / o.tensor, r % o.tensor};
  }
  TENET_TAG TENET_COLD static std::string describe(const MeshOptions& o) {
    return text({o.data, " x ", o.pipeline, " x ", o.tensor});
  }
};

}  // namespace tenet::parallel
