// Work of this process's packages on a GPU: captured once and replayed, and copies in the order of a stream.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bindings.h"
#include "engine/run/cuda/captured_graph.h"
#include "engine/run/cuda/devices.h"
#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

using run::cuda::CapturedGraph;

// For a graph that a daemon runs: captured here, and replayed between two of its CUDA graphs.
struct CapturedWork {
  std::shared_ptr<const CapturedGraph> graph;
};

// `enqueue(stream)` returns None, or why what it did cannot be captured.
CapturedWork captured(const std::string& uuid, const nb::callable& enqueue) {
  auto found = [&]() -> StatusOr<std::shared_ptr<const CapturedGraph>> {
    Released released;
    EAGLE_ASSIGN_OR_RETURN(const auto device, run::cuda::open_by_uuid(uuid));
    return CapturedGraph::capture(device, [&](run::cuda::api::Stream stream) -> Status {
      const Released::Interval gil(released);
      const nb::object said = enqueue(reinterpret_cast<std::uint64_t>(stream));
      return said.is_none() ? Status() : Status(Reason::graph_state, nb::cast<std::string>(said));
    });
  }();
  return {take(std::move(found))};
}

void replay(const CapturedWork& work) {
  const Status done = [&] {
    const Released released;
    return work.graph->replay();
  }();
  check(done);
}

// Behind what the stream has; returns before it is done.
void copy_on_stream(const std::string& uuid, std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                    std::uint64_t stream) {
  const Status done = [&]() -> Status {
    const Released released;
    EAGLE_ASSIGN_OR_RETURN(const auto device, run::cuda::open_by_uuid(uuid));
    return device->run("cuMemcpyDtoDAsync", [&](const run::cuda::api::Functions& call) {
      return call.cuMemcpyDtoDAsync(to, from, bytes, reinterpret_cast<run::cuda::api::Stream>(stream));
    });
  }();
  check(done);
}

}  // namespace

void bind_gpu_work(nb::module_& m) {
  nb::class_<CapturedWork>(m, "CapturedWork").def("replay", replay);
  m.def("captured_work", captured);
  m.def("copy_on_stream", copy_on_stream);
}

}  // namespace eagle::python
