// Writing the description of a reverse pass: nodes over the planes of the forward graph, over one plane of
// its own (the arena), and over scratch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/diff/program.h"
#include "engine/kernel/ir.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}
namespace eagle::v1 {
class GraphDescription;
class Node;
class Stage;
class View;
}  // namespace eagle::v1

namespace eagle::diff {

using plane::View;
using Stages = google::protobuf::RepeatedPtrField<v1::Stage>;

// The same elements side by side: axes in the order of their strides, largest first, from byte 0 of plane 0.
View packed(const View& view);
// Without overlap of elements, in one piece: its elements may be taken as one row.
bool is_contiguous(const View& view);
// Whether every element has bytes of its own.
bool elements_are_apart(const View& view);
// The same elements row-major.
View row_major(const View& view);
// `n` elements side by side.
View row(std::uint32_t plane, std::int64_t offset, plane::DType dtype, std::int64_t n);

// What a launch argument gets: an array, or a Param by the bits of its type.
using Value = std::variant<View, std::uint64_t>;

class Emitter {
public:
  // `arena`: the index that its declaration will have among `out`'s planes, which hold those of the forward
  // graph.
  Emitter(v1::GraphDescription& out, std::uint32_t arena);

  // Room in the arena for `bytes`, at an offset that is `phase` modulo 64.
  std::int64_t reserve(std::int64_t bytes, std::int64_t phase = 0);
  // Room for the elements of `like`, side by side.
  View reserve_like(const View& like);
  View reserve_cell(plane::DType dtype = plane::DType::i64);
  [[nodiscard]] std::int64_t reserved() const { return reserved_; }
  [[nodiscard]] std::uint32_t arena() const { return arena_; }
  // A scratch plane like `like`; for kernels and copies.
  View scratch_like(const View& like, std::string_view label);

  // Labels are made unique; that of the node is returned.
  std::string copy(Stages& into, std::string_view label, const View& source, const View& destination,
                   const std::optional<View>& index = std::nullopt);
  std::string launch(Stages& into, std::string_view label, const kernel::Kernel& kernel,
                     const std::vector<Value>& arguments);  // one an argument, in order
  std::string reduce(Stages& into, std::string_view label, const View& x, const View& out,
                     kernel::ReduceOp op, bool compensated = false);
  struct HostPlane {
    std::string name;
    View view;
  };
  // Returns the number of its call.
  std::uint32_t host(Stages& into, std::string_view label, const std::vector<HostPlane>& reads,
                     const std::vector<HostPlane>& writes);
  struct Cells {
    View count;
    std::optional<View> baseline;
    bool negated = false;
  };
  // The body is the caller's to fill.
  Stages& skippable(Stages& into, std::string_view label, const Cells& guard);
  Stages& repeat_while(Stages& into, std::string_view label, const Cells& guard, std::int64_t max_iterations,
                       const std::optional<View>& iterations);
  // Sets all bits of the elements to 0.
  void clear(Stages& into, std::string_view label, const View& view);
  // The same for one row of a stack; `row` is like a row of it.
  void clear_row(Stages& into, std::string_view label, const View& stack, const View& row, const View& index);

private:
  v1::Node& node(Stages& into, std::string_view label);
  void write(const View& view, v1::View& message) const;
  View zeros_like(const View& view);
  std::uint32_t kernel_index(const kernel::Kernel& kernel);

  v1::GraphDescription& out_;
  std::uint32_t arena_;
  std::int64_t reserved_ = 0;
  std::int64_t zeros_ = 0;
  std::int64_t zero_bytes_ = 64;
  std::uint32_t calls_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> kernels_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
};

}  // namespace eagle::diff
