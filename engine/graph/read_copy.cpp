// Reads a copy node.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/graph.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

std::string plane_of(std::string_view where, std::string_view name) {
  return std::string(where) + ": plane " + kernel::quote_name(name);
}

// Whether every element has bytes of its own, as far as strides that enclose each other can show.
bool elements_are_apart(const plane::View& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // (stride, extent)
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1) axes.emplace_back(std::abs(view.strides[i]), view.shape[i]);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t inner = view.item_bytes;  // bytes that the axes so far reach over
  for (const auto& [stride, extent] : axes) {
    if (stride < inner) return false;
    inner += stride * (extent - 1);
  }
  return true;
}

Status check_types(const plane::View& source, const plane::View& destination, std::string_view where) {
  const bool opaque = source.dtype == plane::DType::other || destination.dtype == plane::DType::other;
  if (!opaque || (source.dtype == destination.dtype && source.item_bytes == destination.item_bytes))
    return {};
  return {
      Reason::wrong_dtype,
      std::string(where) + ": cannot convert " + plane::to_string(source) + " to " +
          plane::to_string(destination) +
          "; float64, float32, int64, int32 and bool are converted, other element types must be the same"};
}

StatusOr<NamedView> read_index(const v1::NamedView& message, const std::vector<Plane>& planes,
                               std::string_view where, PrivateKernelPlanes private_planes) {
  EAGLE_ASSIGN_OR_RETURN(NamedView cell, read_named_view(message, planes, where, Limits().name_bytes));
  const std::string here = plane_of(where, cell.name);
  if (private_planes == PrivateKernelPlanes::refused) {
    EAGLE_RETURN_IF_ERROR(refuse_private(planes[cell.view.plane], here, "the copy"));
  }
  const plane::DType dtype = cell.view.dtype;
  if (dtype != plane::DType::i64 && dtype != plane::DType::i32) {
    return Status(Reason::wrong_dtype, here + ": expected an index of int64 or int32, found " +
                                           plane::to_string(cell.view) +
                                           "; make it with np.zeros(1, dtype=np.int64)");
  }
  if (plane::elements(cell.view) != 1) {
    return Status(Reason::wrong_shape,
                  here + ": expected an index of one element, found " + plane::to_string(cell.view));
  }
  return cell;
}

// One of the two is rows of the other.
Status check_stack(const Copy& copy, std::string_view where) {
  const plane::View& stack = copy.into_stack() ? copy.destination : copy.source;
  const plane::View& row = copy.into_stack() ? copy.source : copy.destination;
  const bool fits = stack.shape.size() == row.shape.size() + 1 && stack.shape.front() >= 1 &&
                    std::equal(row.shape.begin(), row.shape.end(), stack.shape.begin() + 1);
  if (fits) return {};
  return {Reason::wrong_shape, std::string(where) +
                                   ": with an index one of 'src' and 'dst' has one more axis than the other, "
                                   "the first one, of at least "
                                   "one row; found " +
                                   plane::to_string(copy.source) + " and " +
                                   plane::to_string(copy.destination)};
}

}  // namespace

StatusOr<Copy> read_copy(const v1::Copy& message, const std::vector<Plane>& planes, std::string_view where,
                         PrivateKernelPlanes private_planes) {
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  Copy copy;
  const auto read = [&](const v1::View& view, std::string_view name, plane::View& out) -> Status {
    const std::string here = plane_of(where, name);
    EAGLE_ASSIGN_OR_RETURN(out, read_view(view, planes, here));
    if (private_planes == PrivateKernelPlanes::allowed) return {};
    return refuse_private(planes[out.plane], here, "the copy");
  };
  EAGLE_RETURN_IF_ERROR(read(message.source(), copy_source_name, copy.source));
  EAGLE_RETURN_IF_ERROR(read(message.destination(), copy_destination_name, copy.destination));
  EAGLE_RETURN_IF_ERROR(check_types(copy.source, copy.destination, where));
  if (message.has_index()) {
    EAGLE_ASSIGN_OR_RETURN(copy.index, read_index(message.index(), planes, where, private_planes));
    EAGLE_RETURN_IF_ERROR(check_stack(copy, where));
  } else if (copy.source.shape != copy.destination.shape) {
    return Status(Reason::wrong_shape, std::string(where) + ": 'src' and 'dst' must have one shape, found " +
                                           plane::to_string(copy.source) + " and " +
                                           plane::to_string(copy.destination) +
                                           "; reshape one of them, or copy a part");
  }
  if (plane::overlap(copy.source, copy.destination).overlaps) {
    return Status(Reason::plane_overlap,
                  std::string(where) + ": 'src' and 'dst' share bytes: " + plane::to_string(copy.source) +
                      " and " + plane::to_string(copy.destination) + "; copy through an array of its own");
  }
  if (plane::elements(copy.destination) > 0 && !elements_are_apart(copy.destination)) {
    return Status(Reason::plane_overlap,
                  plane_of(where, copy_destination_name) +
                      " holds some bytes under several indices: " + plane::to_string(copy.destination) +
                      "; give it an array in which every element has bytes of its own");
  }
  return copy;
}

}  // namespace eagle::graph
