#include "engine/plane/layout.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace eagle::plane {
namespace {

constexpr std::string_view contiguous_cure =
    "pass a contiguous array, for example session.asarray(np.ascontiguousarray(...)) kept by you, or add "
    "eagle.copy(array, contiguous) to the graph before this node";

std::string shape_of(const View& view) {
  std::string out = "(";
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(view.shape[i]);
  }
  return out + (view.shape.size() == 1 ? ",)" : ")");
}

// "(2, 2, N)"
std::string matrix_shape(const kernel::Type& type) {
  return "(" + std::to_string(type.extents[0]) + ", " + std::to_string(type.extents[1]) + ", N)";
}

// The shapes that an argument takes: "(N,)", "(3, N)", "(4, N) or (2, 2, N)".
std::string expected_shape(const kernel::Type& type) {
  if (type.rank == 0) return "(N,)";
  const std::string flat = "(" + std::to_string(type.components()) + ", N)";
  return type.rank == 1 ? flat : flat + " or " + matrix_shape(type);
}

// A view read as `components` rows of `samples` elements.
struct Rows {
  std::int64_t samples = 0;
  std::int64_t sample_stride = 0;
  std::int64_t component_stride = 0;
};

// Reports faults of one view, each with the same beginning.
class Faults {
public:
  Faults(const View& view, const kernel::Type& type, std::string_view where)
      : view_(view), type_(type), where_(where) {}

  [[nodiscard]] Status dtype() const {
    const DType expected = dtype_of(type_.scalar);
    return {Reason::wrong_dtype,
            begin() + "expected " + std::string(name_of(expected)) + " " + expected_shape(type_) +
                ", found " + found() + "; make one that is with session.asarray(array, dtype=np." +
                (expected == DType::boolean ? "bool_" : std::string(name_of(expected))) + ")"};
  }
  [[nodiscard]] Status shape() const {
    return {Reason::wrong_shape, begin() + "expected shape " + expected_shape(type_) + ", found " +
                                     shape_of(view_) + "; N is the number of samples"};
  }
  [[nodiscard]] Status ambiguous() const {
    const std::string w = std::to_string(type_.components());
    return {Reason::wrong_shape, begin() + "shape " + shape_of(view_) + " is ambiguous: its " + w +
                                     " components may be the rows or the columns; give it as " +
                                     matrix_shape(type_) +
                                     ", or say which with eagle.samples_first(x) or eagle.samples_last(x)"};
  }
  [[nodiscard]] Status copy_bound(const std::string& why, std::string_view cure) const {
    return {Reason::copy_bound_plane, begin() + "would have to be copied: found " + found() + " with " + why +
                                          "; " + std::string(cure)};
  }

private:
  [[nodiscard]] std::string begin() const { return std::string(where_) + ": "; }
  [[nodiscard]] std::string found() const {
    return std::string(view_.dtype == DType::other ? "another element type" : name_of(view_.dtype)) + " " +
           shape_of(view_);
  }

  const View& view_;
  const kernel::Type& type_;
  std::string_view where_;
};

// How the view's axes map to components and samples; none where its shape fits no form.
std::optional<Rows> component_major(const View& view, const kernel::Type& type) {
  const auto& n = view.shape;
  const auto& s = view.strides;
  if (type.rank == 0 && n.size() == 1) return Rows{n[0], s[0], 0};
  if (type.rank > 0 && n.size() == 2 && n[0] == type.components()) return Rows{n[1], s[1], s[0]};
  return std::nullopt;
}

std::optional<Rows> sample_major(const View& view, const kernel::Type& type) {
  if (type.rank == 0 || view.shape.size() != 2 || view.shape[1] != type.components()) return std::nullopt;
  return Rows{view.shape[0], view.strides[0], view.strides[1]};
}

// (R, C, N), and (w, 1, N) for a vector, which says which axis the samples have where (w, w) does not.
bool is_matrix_shaped(const View& view, const kernel::Type& type) {
  return type.rank > 0 && view.shape.size() == 3 && view.shape[0] == type.extents[0] &&
         view.shape[1] == type.extents[1];
}

StatusOr<Layout> finish(const Rows& rows, const View& view, const kernel::Type& type, const Faults& faults) {
  const std::int64_t item = view.item_bytes;
  const bool apart = type.components() > 1 && rows.samples > 0;
  if (rows.samples > 1 && rows.sample_stride != item) {
    return faults.copy_bound("a stride of " + std::to_string(rows.sample_stride) +
                                 " bytes between samples where " + std::to_string(item) + " is needed",
                             contiguous_cure);
  }
  const std::int64_t row_bytes = rows.samples * item;  // contiguous, so no more than the plane
  if (apart && std::abs(rows.component_stride) < row_bytes) {
    return faults.copy_bound(
        "components " + std::to_string(rows.component_stride) + " bytes apart that overlap each other",
        contiguous_cure);
  }
  if (view.offset % item != 0 || (apart && rows.component_stride % item != 0)) {
    return faults.copy_bound("elements that are not aligned to " + std::to_string(item) + " bytes",
                             contiguous_cure);
  }
  return Layout{rows.samples, apart ? rows.component_stride : row_bytes};
}

// (R, C, N): the strides of both matrix axes must come from one component stride.
StatusOr<Layout> matrix_layout(const View& view, const kernel::Type& type, const Faults& faults) {
  const auto& s = view.strides;
  const int rows = type.extents[0];
  const int columns = type.extents[1];
  const std::int64_t component_stride = columns > 1 ? s[1] : s[0];
  // Divided, not multiplied: strides are up to 63 bits wide.
  const bool one_stride =
      rows == 1 || columns == 1 || (s[0] % columns == 0 && s[0] / columns == component_stride);
  if (view.shape[2] > 0 && !one_stride) {
    return faults.copy_bound("strides of " + std::to_string(s[0]) + " and " + std::to_string(s[1]) +
                                 " bytes that place its components unevenly",
                             contiguous_cure);
  }
  return finish({view.shape[2], s[2], component_stride}, view, type, faults);
}

// "(\"row\": 4, \"column\": 5)"
std::string axes_of(const kernel::Argument& table) {
  std::string text = "(";
  for (const kernel::Axis& axis : table.axes) {
    if (text.size() > 1) text += ", ";
    text += axis.name + ": " + std::to_string(axis.extent);
  }
  return text + ")";
}

// A view with one dimension for each axis of the table, turned into one with a single dimension for all of
// them; the view itself where it does not have that form. Rows that lie apart cannot be merged.
StatusOr<View> merge_axes(const View& view, const kernel::Argument& table, const Faults& faults) {
  const std::size_t axes = table.axes.size();
  const std::size_t leading = table.type.rank == 0 ? 0 : 1;
  if (axes < 2 || view.shape.size() != leading + axes) return view;
  for (std::size_t a = 0; a < axes; ++a) {
    if (view.shape[leading + a] != table.axes[a].extent) return view;
  }
  View merged = view;
  merged.shape.resize(leading + 1);
  merged.strides.resize(leading + 1);
  std::int64_t elements = 1;
  std::int64_t stride = view.item_bytes;
  for (std::size_t a = axes; a-- > 0;) {
    if (view.shape[leading + a] > 1 && view.strides[leading + a] != stride) {
      return faults.copy_bound("axes that are not row-major and contiguous", contiguous_cure);
    }
    elements *= view.shape[leading + a];  // no more than the plane has
    stride *= view.shape[leading + a];
  }
  merged.shape[leading] = elements;
  merged.strides[leading] = view.item_bytes;
  return merged;
}

}  // namespace

DType dtype_of(kernel::Scalar scalar) {
  switch (scalar) {
    case kernel::Scalar::f64:
      return DType::f64;
    case kernel::Scalar::f32:
      return DType::f32;
    case kernel::Scalar::i64:
      return DType::i64;
    case kernel::Scalar::i32:
      return DType::i32;
    case kernel::Scalar::boolean:
      return DType::boolean;
  }
  return DType::other;
}

StatusOr<Layout> layout_of(const View& view, const kernel::Type& type, std::string_view where) {
  const Faults faults(view, type, where);
  if (view.dtype != dtype_of(type.scalar)) return faults.dtype();
  if (is_matrix_shaped(view, type)) return matrix_layout(view, type, faults);

  const std::optional<Rows> straight = component_major(view, type);
  const std::optional<Rows> turned = sample_major(view, type);
  if (straight && turned && type.components() > 1) return faults.ambiguous();
  if (straight) return finish(*straight, view, type, faults);
  if (!turned) return faults.shape();
  // A contiguous (N, w) array keeps the components of one sample together, which no kernel reads.
  if (type.components() > 1 && turned->samples > 1 && turned->sample_stride != view.item_bytes &&
      turned->component_stride == view.item_bytes) {
    return faults.copy_bound(
        "samples first, " + std::to_string(turned->sample_stride) + " bytes apart (sample-major)",
        "keep the array component-major, " + expected_shape(type) +
            ": session.asarray(np.ascontiguousarray(array.T))");
  }
  return finish(*turned, view, type, faults);
}

StatusOr<Layout> layout_of_one(const View& view, const kernel::Type& type, std::string_view where) {
  const Faults faults(view, type, where);
  if (view.dtype != dtype_of(type.scalar)) return faults.dtype();
  if (elements(view) != 1) {
    return Status(Reason::wrong_shape, std::string(where) +
                                           ": expected one element (what all samples make "
                                           "together), found " +
                                           std::string(name_of(view.dtype)) + " " + shape_of(view));
  }
  return finish({1, view.item_bytes, 0}, view, type, faults);
}

StatusOr<Layout> layout_of_table(const View& view, const kernel::Argument& table, std::string_view where) {
  const Faults faults(view, table.type, where);
  EAGLE_ASSIGN_OR_RETURN(const View merged, merge_axes(view, table, faults));
  EAGLE_ASSIGN_OR_RETURN(const Layout layout, layout_of(merged, table.type, where));
  if (table.axes.empty()) {
    if (layout.samples > 0) return layout;
    return Status(Reason::bad_value, std::string(where) + ": " +
                                         (table.role == kernel::Role::accum ? "an accumulator" : "a table") +
                                         " needs at least one element, found " + shape_of(view));
  }
  std::int64_t elements = 1;
  for (const kernel::Axis& axis : table.axes) elements *= axis.extent;  // bounded by the verifier
  if (layout.samples == elements) return layout;
  return Status(Reason::wrong_shape, std::string(where) + ": expected " + std::to_string(elements) +
                                         " elements, one for each of " + axes_of(table) + ", found " +
                                         std::to_string(layout.samples) + " in " + shape_of(view));
}

}  // namespace eagle::plane
