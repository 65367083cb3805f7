// Reads one reduce node: what may be reduced into what.
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/graph.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

using kernel::ReduceOp;
using kernel::Scalar;
using plane::DType;
using plane::View;

StatusOr<Scalar> scalar_of(const View& view, const std::string& where) {
  switch (view.dtype) {
    case DType::f64:
      return Scalar::f64;
    case DType::f32:
      return Scalar::f32;
    case DType::i64:
      return Scalar::i64;
    case DType::i32:
      return Scalar::i32;
    case DType::boolean:
      return Scalar::boolean;
    case DType::other:
      break;
  }
  return Status(Reason::wrong_dtype,
                where +
                    ": expected float64, float32, int64, int32 or bool, found another "
                    "element type; make one of these with session.asarray(array, dtype=...)");
}

bool is_contiguous(const View& view) {
  std::int64_t stride = view.item_bytes;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    if (view.shape[d] != 1 && view.strides[d] != stride) return false;
    stride *= view.shape[d];
  }
  return true;
}

std::string shape_text(const View& view) {
  std::string text = "(";
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(view.shape[d]);
  return text + (view.shape.size() == 1 ? ",)" : ")");
}

Status check_contiguous(const View& view, const std::string& where) {
  if (!is_contiguous(view)) {
    return {Reason::copy_bound_plane,
            where + " is not contiguous: " + plane::to_string(view) +
                "; make one that is with session.asarray(np.ascontiguousarray(array))"};
  }
  if (view.offset % view.item_bytes == 0) return {};
  return {Reason::copy_bound_plane, where + " is not aligned to its elements: it begins at byte " +
                                        std::to_string(view.offset) +
                                        " of its memory; copy it into an array of its own"};
}

Status check_shapes(const std::string& where, Reduce& reduce) {
  const View& x = reduce.x.view;
  const View& out = reduce.out.view;
  if (x.shape.empty() || x.shape.size() > 2) {
    return {Reason::wrong_shape,
            where + ": x: expected shape (N,) or (rows, N), found " + shape_text(x) + "; reshape it"};
  }
  reduce.rows = x.shape.size() == 2 ? x.shape[0] : 1;
  reduce.samples = x.shape.back();
  if (plane::elements(x) == 0) {
    return {Reason::bad_value, where + ": x: expected at least one element, found none (shape " +
                                   shape_text(x) + "); there is nothing to reduce"};
  }
  const bool one = x.shape.size() == 1;
  const bool matches = one ? plane::elements(out) == 1 && out.shape.size() <= 1
                           : out.shape.size() == 1 && out.shape[0] == reduce.rows;
  if (matches) return {};
  return {Reason::wrong_shape,
          where + ": out: expected " +
              (one ? std::string("one element") : "shape (" + std::to_string(reduce.rows) + ",)") +
              " for x of shape " + shape_text(x) + ", found " + shape_text(out)};
}

Status check_op(const v1::Reduce& message, const std::string& where, Reduce& reduce) {
  if (message.op() < v1::REDUCE_SUM || message.op() > v1::REDUCE_ANY) {
    return {Reason::malformed_graph,
            where + ": op: reduction " + std::to_string(message.op()) + " is unknown to this version"};
  }
  reduce.op = static_cast<ReduceOp>(message.op());
  reduce.compensated = message.compensated();
  const std::string op(kernel::name_of(reduce.op));
  const std::string dtype(plane::name_of(reduce.x.view.dtype));
  if (!kernel::can_reduce(reduce.op, reduce.scalar)) {
    const bool boolean = reduce.scalar == Scalar::boolean;
    return {Reason::wrong_dtype, where + ": op: expected " +
                                     (boolean ? "'all' or 'any'" : "'sum', 'max' or 'min'") + " for x of " +
                                     dtype + ", found '" + op + "'"};
  }
  if (reduce.compensated && (reduce.op != ReduceOp::sum || !kernel::is_real(reduce.scalar))) {
    return {Reason::bad_value, where + ": compensated: only a sum of float64 or float32 can be, found '" +
                                   op + "' of " + dtype + "; leave it out"};
  }
  return {};
}

}  // namespace

StatusOr<Reduce> read_reduce(const v1::Reduce& message, const std::vector<Plane>& planes,
                             std::string_view where, PrivateKernelPlanes private_planes,
                             std::uint32_t name_bytes) {
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  const std::string here(where);
  Reduce reduce;
  EAGLE_ASSIGN_OR_RETURN(reduce.x, read_named_view(message.x(), planes, here + ": x", name_bytes));
  EAGLE_ASSIGN_OR_RETURN(reduce.out, read_named_view(message.out(), planes, here + ": out", name_bytes));
  if (private_planes == PrivateKernelPlanes::refused) {
    EAGLE_RETURN_IF_ERROR(refuse_private(planes[reduce.x.view.plane], here + ": x", "the reduction"));
    EAGLE_RETURN_IF_ERROR(refuse_private(planes[reduce.out.view.plane], here + ": out", "the reduction"));
  }
  EAGLE_ASSIGN_OR_RETURN(reduce.scalar, scalar_of(reduce.x.view, here + ": x"));
  if (reduce.out.view.dtype != reduce.x.view.dtype) {
    return Status(Reason::wrong_dtype, here + ": out: expected " +
                                           std::string(plane::name_of(reduce.x.view.dtype)) +
                                           " (the element type of x), found " +
                                           std::string(plane::name_of(reduce.out.view.dtype)));
  }
  EAGLE_RETURN_IF_ERROR(check_shapes(here, reduce));
  EAGLE_RETURN_IF_ERROR(check_contiguous(reduce.x.view, here + ": x"));
  EAGLE_RETURN_IF_ERROR(check_contiguous(reduce.out.view, here + ": out"));
  EAGLE_RETURN_IF_ERROR(check_op(message, here, reduce));
  if (plane::overlap(reduce.x.view, reduce.out.view).overlaps) {
    return Status(Reason::plane_overlap, here + ": out: it shares bytes with x, " +
                                             plane::to_string(reduce.out.view) + " and " +
                                             plane::to_string(reduce.x.view) + "; give it memory of its own");
  }
  return reduce;
}

}  // namespace eagle::graph
