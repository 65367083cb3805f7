#include "engine/diff/emit.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/wire.h"
#include "engine/kernel/wire.h"

namespace eagle::diff {
namespace {

constexpr std::int64_t alignment = 64;

// Axes of the view that have more than one element, by the distance between them.
std::vector<std::size_t> axes_by_stride(const View& view) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < view.shape.size(); ++i) axes.push_back(i);
  const auto key = [&](std::size_t axis) { return std::pair(-std::abs(view.strides[axis]), axis); };
  std::sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return axes;
}

void set(const kernel::Type& type, std::uint64_t bits, v1::ParamValue& message) {
  switch (type.scalar) {
    case kernel::Scalar::f64:
      message.set_real(std::bit_cast<double>(bits));
      break;
    case kernel::Scalar::f32:
      message.set_real(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      break;
    case kernel::Scalar::i64:
    case kernel::Scalar::i32:
    case kernel::Scalar::boolean:
      message.set_integer(static_cast<std::int64_t>(bits));
      break;
  }
}

}  // namespace

View packed(const View& view) {
  View out = view;
  out.plane = 0;
  out.offset = 0;
  std::int64_t step = view.item_bytes;
  const std::vector<std::size_t> axes = axes_by_stride(view);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    out.strides[*axis] = step;
    step *= std::max<std::int64_t>(view.shape[*axis], 1);
  }
  return out;
}

bool is_contiguous(const View& view) {
  std::int64_t step = view.item_bytes;
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] != 1 && view.strides[i] != step) return false;
    step *= view.shape[i];
  }
  return true;
}

bool elements_are_apart(const View& view) {
  std::int64_t inner = view.item_bytes;
  const std::vector<std::size_t> axes = axes_by_stride(view);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (view.shape[*axis] < 2) continue;
    const std::int64_t stride = std::abs(view.strides[*axis]);
    if (stride < inner) return false;
    inner += stride * (view.shape[*axis] - 1);
  }
  return true;
}

View row_major(const View& view) {
  View out = view;
  std::int64_t step = view.item_bytes;
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    out.strides[i] = step;
    step *= std::max<std::int64_t>(view.shape[i], 1);
  }
  return out;
}

View row(std::uint32_t plane, std::int64_t offset, plane::DType dtype, std::int64_t n) {
  const std::uint32_t item = plane::bytes_of(dtype);
  return {plane, offset, dtype, item, {n}, {item}};
}

Emitter::Emitter(v1::GraphDescription& out, std::uint32_t arena) : out_(out), arena_(arena) {
  zeros_ = reserve(zero_bytes_);
}

std::int64_t Emitter::reserve(std::int64_t bytes, std::int64_t phase) {
  reserved_ = (reserved_ + alignment - 1) / alignment * alignment + phase;
  const std::int64_t offset = reserved_;
  reserved_ += std::max<std::int64_t>(bytes, 1);
  return offset;
}

View Emitter::reserve_like(const View& like) {
  View view = packed(like);
  view.plane = arena_;
  view.offset = reserve(plane::elements(like) * like.item_bytes);
  return view;
}

View Emitter::reserve_cell(plane::DType dtype) {
  return row(arena_, reserve(plane::bytes_of(dtype)), dtype, 1);
}

View Emitter::scratch_like(const View& like, std::string_view label) {
  View view = packed(like);
  view.plane = static_cast<std::uint32_t>(out_.planes_size());
  v1::PlaneDeclaration& plane = *out_.add_planes();
  plane.mutable_scratch();
  plane.set_bytes(
      static_cast<std::uint64_t>(std::max<std::int64_t>(plane::elements(like) * like.item_bytes, 1)));
  plane.set_label(std::string(label));
  return view;
}

v1::Node& Emitter::node(Stages& into, std::string_view label) {
  v1::Node& node = *into.Add()->mutable_node();
  const auto [known, fresh] = labels_.try_emplace(std::string(label), 1);
  std::string name(label);
  while (!fresh) {
    name = std::string(label) + "#" + std::to_string(++known->second);
    if (labels_.try_emplace(name, 1).second) break;
  }
  node.set_name(name);
  return node;
}

void Emitter::write(const View& view, v1::View& message) const {
  graph::to_message(view, message);
  message.set_plane(view.plane);
}

std::uint32_t Emitter::kernel_index(const kernel::Kernel& kernel) {
  std::string key = kernel::content_hash(kernel) + kernel.name;
  for (const kernel::Argument& argument : kernel.arguments) key += "," + argument.name;
  const auto [known, fresh] =
      kernels_.try_emplace(std::move(key), static_cast<std::uint32_t>(out_.kernels_size()));
  if (fresh) kernel::to_message(kernel, *out_.add_kernels());
  return known->second;
}

std::string Emitter::copy(Stages& into, std::string_view label, const View& source, const View& destination,
                          const std::optional<View>& index) {
  v1::Node& added = node(into, label);
  v1::Copy& copy = *added.mutable_copy();
  write(source, *copy.mutable_source());
  write(destination, *copy.mutable_destination());
  if (index) {
    copy.mutable_index()->set_name("index");
    write(*index, *copy.mutable_index()->mutable_view());
  }
  return added.name();
}

std::string Emitter::launch(Stages& into, std::string_view label, const kernel::Kernel& kernel,
                            const std::vector<Value>& arguments) {
  v1::Node& added = node(into, label);
  v1::KernelLaunch& launch = *added.mutable_kernel();
  launch.set_kernel(kernel_index(kernel));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    v1::Binding& binding = *launch.add_bindings();
    binding.set_argument(kernel.arguments[i].name);
    if (const auto* const view = std::get_if<View>(&arguments[i])) {
      write(*view, *binding.mutable_view());
    } else {
      set(kernel.arguments[i].type, std::get<std::uint64_t>(arguments[i]), *binding.mutable_param());
    }
  }
  return added.name();
}

std::string Emitter::reduce(Stages& into, std::string_view label, const View& x, const View& out,
                            kernel::ReduceOp op, bool compensated) {
  v1::Node& added = node(into, label);
  v1::Reduce& reduce = *added.mutable_reduce();
  reduce.mutable_x()->set_name("x");
  write(x, *reduce.mutable_x()->mutable_view());
  reduce.mutable_out()->set_name("out");
  write(out, *reduce.mutable_out()->mutable_view());
  reduce.set_op(static_cast<v1::ReduceOp>(op));
  reduce.set_compensated(compensated);
  return added.name();
}

std::uint32_t Emitter::host(Stages& into, std::string_view label, const std::vector<HostPlane>& reads,
                            const std::vector<HostPlane>& writes) {
  v1::HostNode& host = *node(into, label).mutable_host();
  host.set_call(calls_++);
  host.set_tier(v1::HOST_TIER_CAPTURED);
  for (const HostPlane& plane : reads) {
    v1::NamedView& named = *host.add_reads();
    named.set_name(plane.name);
    write(plane.view, *named.mutable_view());
  }
  for (const HostPlane& plane : writes) {
    v1::NamedView& named = *host.add_writes();
    named.set_name(plane.name);
    write(plane.view, *named.mutable_view());
  }
  return host.call();
}

namespace {

template <typename Write>
void set_guard(const Emitter::Cells& cells, v1::Guard& guard, const Write& write) {
  guard.mutable_count()->set_name("guard");
  write(cells.count, *guard.mutable_count()->mutable_view());
  if (cells.baseline) {
    guard.mutable_baseline()->set_name("baseline");
    write(*cells.baseline, *guard.mutable_baseline()->mutable_view());
  }
  guard.set_negated(cells.negated);
}

}  // namespace

Stages& Emitter::skippable(Stages& into, std::string_view label, const Cells& guard) {
  v1::Skippable& skippable = *node(into, label).mutable_skippable();
  set_guard(guard, *skippable.mutable_guard(),
            [&](const View& view, v1::View& message) { write(view, message); });
  return *skippable.mutable_body();
}

Stages& Emitter::repeat_while(Stages& into, std::string_view label, const Cells& guard,
                              std::int64_t max_iterations, const std::optional<View>& iterations) {
  v1::RepeatWhile& loop = *node(into, label).mutable_repeat_while();
  set_guard(guard, *loop.mutable_guard(), [&](const View& view, v1::View& message) { write(view, message); });
  loop.set_max_iterations(max_iterations);
  if (iterations) {
    loop.mutable_iterations()->set_name("iterations");
    write(*iterations, *loop.mutable_iterations()->mutable_view());
  }
  return *loop.mutable_body();
}

View Emitter::zeros_like(const View& view) {
  if (static_cast<std::int64_t>(view.item_bytes) > zero_bytes_) {
    zero_bytes_ = view.item_bytes;
    zeros_ = reserve(zero_bytes_);
  }
  View zero = view;
  zero.plane = arena_;
  zero.offset = zeros_;
  std::fill(zero.strides.begin(), zero.strides.end(), 0);
  return zero;
}

void Emitter::clear(Stages& into, std::string_view label, const View& view) {
  copy(into, label, zeros_like(view), view);
}

void Emitter::clear_row(Stages& into, std::string_view label, const View& stack, const View& row,
                        const View& index) {
  copy(into, label, zeros_like(row), stack, index);
}

}  // namespace eagle::diff
