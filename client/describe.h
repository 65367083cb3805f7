// Describing: the one place where a caller's arrays become views of planes.
//
// Memory that the session owns becomes a view of its plane. Everything else is private memory: the bounding
// byte ranges of all private views are merged where they overlap, and each merged range becomes one private
// plane, so that edges are exact whatever objects the arrays came from. What the description *means* is not
// judged here; that is engine/graph's, on both sides of the wire.
//
// Errors: MIXED_SESSIONS (both sessions named), READ_ONLY_ARRAY, VIEW_OUTSIDE_PLANE, BAD_VALUE, WRONG_TYPE.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/host.h"
#include "eagle/client/graph.h"
#include "eagle/client/run.h"
#include "eagle/client/stepping.h"
#include "engine/base/status.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}
namespace eagle::v1 {
class FetchRunRequest;
class GraphDescription;
class NamedView;
class RunDescription;
}  // namespace eagle::v1

namespace eagle {

// One top-level `add`.
struct StageSpec {
  std::vector<BranchSpec> branches;
  bool group = false;
};
using Stages = std::span<const std::shared_ptr<const StageSpec>>;

// What a description refers to besides its own bytes. Keep it for as long as the graph or run lives.
struct Backing {
  std::vector<run::PlaneMemory> private_planes;  // by plane index; null data for planes of the session
  std::vector<std::shared_ptr<const void>> keep_alive;
  std::vector<std::function<Status()>> calls;  // by HostNode.call
  GpuWorks works;                              // likewise
  std::string device;                          // of the first array that lies on a GPU: "cuda:0"
};

// `message` is empty before, and unspecified after an error.
StatusOr<Backing> describe_graph(const Host& host, std::string_view name, Stages stages,
                                 v1::GraphDescription& message);
// The arrays that planes of a run are to be copied into.
StatusOr<Backing> describe_arrays(const Host& host, const NamedArrays& arrays, v1::FetchRunRequest& message);
// `named`: arrays that the message is to hold views of, too.
// `run_calls`: what the calls of the description's host steps run, by number.
StatusOr<Backing> describe_run(const Host& host, std::span<const ModelStep> model,
                               const SimulateOptions& options, v1::RunDescription& message,
                               std::vector<std::function<step::HostAnswer()>>& run_calls,
                               const NamedArrays& named = {},
                               google::protobuf::RepeatedPtrField<v1::NamedView>* views = nullptr);

}  // namespace eagle
