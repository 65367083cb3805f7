#include "engine/graph/wire.h"

#include <limits>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/plane.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/unknown_field.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

Status malformed(std::string_view where, const std::string& message) {
  return {Reason::malformed_graph, std::string(where) + ": " + message};
}

bool is_dtype(int number) {
  const auto dtype = static_cast<plane::DType>(number);
  return number == static_cast<int>(plane::DType::other) ||
         (number > 0 && number < 256 && plane::bytes_of(dtype) > 0);
}

}  // namespace

Status refuse_unknown_fields(const google::protobuf::Message& message, std::string_view where) {
  const int unknown = kernel::unknown_field(message);
  if (unknown == 0) return {};
  return malformed(where, "field " + std::to_string(unknown) +
                              " is unknown to this version; the client is newer, or the bytes are damaged");
}

bool works_on_gpu(const v1::HostNode& node) { return works_on_gpu(static_cast<HostTier>(node.tier())); }

Status check_name(const std::string& name, std::string_view where, std::string_view what,
                  std::uint32_t limit) {
  if (name.size() > limit) {
    return {Reason::graph_limit, std::string(where) + ": expected a " + std::string(what) + " of at most " +
                                     std::to_string(limit) + " bytes (graph_name_bytes), found " +
                                     std::to_string(name.size()) + "; give a shorter one"};
  }
  if (!kernel::is_utf8(name)) {
    return malformed(where, "the " + std::string(what) + " " + quote_name(name) + " is not UTF-8");
  }
  return {};
}

StatusOr<Plane> read_plane_within(const v1::PlaneDeclaration& message, std::string_view where,
                                  std::uint32_t name_bytes) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  EAGLE_RETURN_IF_ERROR(check_name(message.label(), where, "label", name_bytes));
  Plane plane;
  plane.bytes = message.bytes();
  plane.label = message.label();
  if (plane.bytes > most) {
    return Status(Reason::bad_value, std::string(where) + ": expected at most " + std::to_string(most) +
                                         " bytes, found " + std::to_string(plane.bytes));
  }
  plane.begins = message.begins();
  if (plane.begins > plane.bytes) {
    return Status(Reason::bad_value, std::string(where) + ": expected an array that begins within its " +
                                         std::to_string(plane.bytes) + " bytes, found one that begins at " +
                                         std::to_string(plane.begins));
  }
  switch (message.memory_case()) {
    case v1::PlaneDeclaration::kPlane:
      EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message.plane(), where));
      plane.shared = PlaneId{message.plane().id(), message.plane().generation()};
      return plane;
    case v1::PlaneDeclaration::kPrivateMemory:
      EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message.private_memory(), where));
      return plane;
    case v1::PlaneDeclaration::kScratch:
      EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message.scratch(), where));
      plane.scratch = true;
      return plane;
    case v1::PlaneDeclaration::MEMORY_NOT_SET:
      break;
  }
  return malformed(where, "expected a plane of the session, private memory or scratch, found neither");
}

plane::View unchecked_view(const v1::View& message) {
  return {message.plane(),
          message.offset(),
          static_cast<plane::DType>(message.dtype()),
          message.item_bytes(),
          {message.shape().begin(), message.shape().end()},
          {message.strides().begin(), message.strides().end()}};
}

void to_message(const plane::View& view, v1::View& message) {
  message.set_offset(view.offset);
  message.set_dtype(static_cast<v1::DType>(view.dtype));
  message.set_item_bytes(view.item_bytes);
  message.mutable_shape()->Add(view.shape.begin(), view.shape.end());
  message.mutable_strides()->Add(view.strides.begin(), view.strides.end());
}

StatusOr<plane::View> read_view(const v1::View& message, const std::vector<Plane>& planes,
                                std::string_view where) {
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  if (message.plane() >= planes.size()) {
    return malformed(where, "refers to plane " + std::to_string(message.plane()) + " of a description with " +
                                std::to_string(planes.size()));
  }
  if (!is_dtype(message.dtype())) {
    return malformed(where,
                     "element type " + std::to_string(message.dtype()) + " is unknown to this version");
  }
  plane::View view = unchecked_view(message);
  EAGLE_RETURN_IF_ERROR(plane::check(view, planes[view.plane].bytes).within(where));
  return view;
}

StatusOr<NamedView> read_named_view(const v1::NamedView& message, const std::vector<Plane>& planes,
                                    std::string_view where, std::uint32_t name_bytes) {
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  EAGLE_RETURN_IF_ERROR(check_name(message.name(), where, "plane name", name_bytes));
  const auto here = [&] { return std::string(where) + ": plane " + quote_name(message.name()); };
  if (!message.has_view()) return malformed(here(), "expected a view, found none");
  StatusOr<plane::View> view = read_view(message.view(), planes, {});
  if (!view.ok()) return read_view(message.view(), planes, here()).status();
  return NamedView{message.name(), *std::move(view)};
}

Status refuse_private(const Plane& plane, std::string_view where, std::string_view user) {
  if (plane.shared || plane.scratch) return {};
  const std::string label = plane.label.empty() ? "" : " " + quote_name(plane.label);
  return {
      Reason::private_array,
      std::string(where) + ": the array" + label + " is private memory of the client, and " +
          std::string(user) +
          " runs in the daemon, which cannot reach it; make the array with session.zeros(...), copy it in "
          "with session.asarray(...), share it with eagle.share(...), or let numpy allocate in the session "
          "inside `with eagle.shared_arrays():`"};
}

Status refuse_scratch(const Plane& plane, std::string_view where) {
  if (!plane.scratch) return {};
  return {
      Reason::scratch_plane,
      std::string(where) + ": " + (plane.label.empty() ? "it" : quote_name(plane.label)) +
          " is a scratch plane, which only kernels, copies and reductions of its graph can touch: a callable "
          "has no memory to look at; copy it into an array with eagle.copy(...), or use an array instead"};
}

StatusOr<Plane> read_plane(const v1::PlaneDeclaration& message, std::string_view where) {
  return read_plane_within(message, where, Limits{}.name_bytes);
}

}  // namespace eagle::graph
