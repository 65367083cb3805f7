// GpuWork: what a callable of an opaque node is on a GPU, for a graph or a run whose session computes in this
// process.
//
//   Opaque node = opaque([&] { return launch_mine(stream); }, {.reads = {{"x", x}}, .writes = {{"y", y}}},
//                        HostTier::stream);
//   node.on_gpu = std::make_shared<const GpuWork>(GpuWork{.stream = handle});
//
// One of three, and with it the node's tier; `stream` is for graphs alone. A run asks as it begins. Where the
// session is a daemon's, or the arrays lie in memory of the host, nothing of this is looked at, and
// `Opaque::call` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle {

struct GpuWork {
  // HostTier::recorded. Called once, by `build`, with a CUstream that is being captured: what it enqueues
  // there becomes part of the graph, and nothing is called at launches. It may neither allocate memory of the
  // GPU nor wait for the GPU.
  std::function<Status(std::uint64_t stream)> enqueue = {};
  // HostTier::stream. `Opaque::call` enqueues on this CUstream (0: the default one) and waits for nothing.
  std::optional<std::uint64_t> stream = std::nullopt;
  // HostTier::child. The CUgraph that a package captured, 0 where there is none now: asked by `build`, which
  // takes a copy, and before each launch, which is refused once it is another one.
  std::function<std::uint64_t()> graph = {};
  // A launch of it is over, however it ended.
  std::function<void()> over = {};
  // What refusals of a run call it, whose parts have no names of their own; "": by its place.
  std::string name = {};
};

// By call of a description; null: it is called.
using GpuWorks = std::vector<std::shared_ptr<const GpuWork>>;

}  // namespace eagle
