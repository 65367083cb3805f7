// What the readers of graphs, launches and planes share: planes, views and names from messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/graph/param.h"

namespace google::protobuf {
class Message;
}
namespace eagle::v1 {
class Copy;
class HostNode;
class NamedView;
class ParamValue;
class Reduce;
class View;
}  // namespace eagle::v1

namespace eagle::graph {

// Refuses fields that this version does not know (they could change what the message means); looks at
// `message` itself, not at messages within it.
Status refuse_unknown_fields(const google::protobuf::Message& message, std::string_view where);

// Of a node's message: as graph.h says of tiers.
bool works_on_gpu(const v1::HostNode& node);

// UTF-8 of at most `limit` bytes; `what` is "name", "label", ...
Status check_name(const std::string& name, std::string_view where, std::string_view what,
                  std::uint32_t limit);

// The rules of `read_plane` (graph.h), with another limit on the label.
StatusOr<Plane> read_plane_within(const v1::PlaneDeclaration& message, std::string_view where,
                                  std::uint32_t name_bytes);

// The numbers of a view as they stand, of which nothing is checked.
plane::View unchecked_view(const v1::View& message);
// But for the plane, which is the caller's to say.
void to_message(const plane::View& view, v1::View& message);
// A view that lies in one of `planes`.
StatusOr<plane::View> read_view(const v1::View& message, const std::vector<Plane>& planes,
                                std::string_view where);
// The same with a name; `where` is that of the node, the name is added to it.
StatusOr<NamedView> read_named_view(const v1::NamedView& message, const std::vector<Plane>& planes,
                                    std::string_view where, std::uint32_t name_bytes);

// `read_launch` (graph.h) for a kernel whose accesses are known already.
StatusOr<KernelLaunch> read_launch_of(const v1::KernelLaunch& message, const kernel::Kernel& kernel,
                                      const std::vector<kernel::Access>& accesses,
                                      const std::vector<Plane>& planes, std::string_view where,
                                      PrivateKernelPlanes private_planes);
StatusOr<Number> read_number(const v1::ParamValue& message, std::string_view where);

// A copy: views of one shape, of element types that can be converted (or opaque ones of one size), that share
// no byte; the destination holds each element once.
StatusOr<Copy> read_copy(const v1::Copy& message, const std::vector<Plane>& planes, std::string_view where,
                         PrivateKernelPlanes private_planes);
// The kernel's index, or MALFORMED_GRAPH.
StatusOr<std::uint32_t> read_kernel_index(const v1::KernelLaunch& message, std::size_t kernels,
                                          std::string_view where);

// A reduce node: the rules of eagle.reduce, each refusal by argument name.
StatusOr<Reduce> read_reduce(const v1::Reduce& message, const std::vector<Plane>& planes,
                             std::string_view where, PrivateKernelPlanes private_planes,
                             std::uint32_t name_bytes);

// The counter of a loop of at most `max_iterations` bodies: one i64 or i32 element that can hold that number.
StatusOr<NamedView> read_counter(const v1::NamedView& message, const std::vector<Plane>& planes,
                                 std::int64_t max_iterations, std::string_view where,
                                 PrivateKernelPlanes private_planes, std::uint32_t name_bytes);
// BAD_VALUE, if the body of a loop writes the loop's counter.
Status check_counters(const Graph& graph);

// PRIVATE_ARRAY, if the plane is private memory: `user` is what the daemon would have to run.
Status refuse_private(const Plane& plane, std::string_view where, std::string_view user);
// SCRATCH_PLANE, if the plane is scratch: a callable of the client has no memory to look at.
Status refuse_scratch(const Plane& plane, std::string_view where);

}  // namespace eagle::graph
