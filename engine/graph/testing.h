// Graph descriptions written as a user would think of them, for tests. Arrays are views of planes that the
// description declares; engine/plane/testing.h slices them as numpy does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/graph.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/wire.h"
#include "engine/plane/testing.h"

namespace eagle::graph::testing {

using plane::DType;
using plane::View;
using Planes = std::vector<std::pair<std::string, View>>;

inline void to_message(const View& view, v1::View& message) {
  message.set_plane(view.plane);
  message.set_offset(view.offset);
  message.set_dtype(static_cast<v1::DType>(view.dtype));
  message.set_item_bytes(view.item_bytes);
  message.mutable_shape()->Assign(view.shape.begin(), view.shape.end());
  message.mutable_strides()->Assign(view.strides.begin(), view.strides.end());
}

inline void to_message(const std::string& name, const View& view, v1::NamedView& message) {
  message.set_name(name);
  to_message(view, *message.mutable_view());
}

// A host node: opaque(fn, reads=..., writes=...).
inline v1::Node host(const std::string& name, const Planes& reads, const Planes& writes,
                     std::uint32_t call = 0) {
  v1::Node node;
  node.set_name(name);
  node.mutable_host()->set_call(call);
  node.mutable_host()->set_tier(v1::HOST_TIER_CAPTURED);
  for (const auto& [plane, view] : reads) to_message(plane, view, *node.mutable_host()->add_reads());
  for (const auto& [plane, view] : writes) to_message(plane, view, *node.mutable_host()->add_writes());
  return node;
}

inline v1::Node reduce(const std::string& name, const View& x, const View& out,
                       v1::ReduceOp op = v1::REDUCE_SUM, bool compensated = false) {
  v1::Node node;
  node.set_name(name);
  to_message("x", x, *node.mutable_reduce()->mutable_x());
  to_message("out", out, *node.mutable_reduce()->mutable_out());
  node.mutable_reduce()->set_op(op);
  node.mutable_reduce()->set_compensated(compensated);
  return node;
}

// One argument of a launch: an array, or a number by value.
using Value = std::variant<View, double, std::int64_t>;
using Arguments = std::vector<std::pair<std::string, Value>>;

inline v1::Node launch(const std::string& name, std::uint32_t kernel, const Arguments& arguments) {
  v1::Node node;
  node.set_name(name);
  node.mutable_kernel()->set_kernel(kernel);
  for (const auto& [argument, value] : arguments) {
    v1::Binding& binding = *node.mutable_kernel()->add_bindings();
    binding.set_argument(argument);
    if (const auto* const view = std::get_if<View>(&value)) to_message(*view, *binding.mutable_view());
    if (const auto* const real = std::get_if<double>(&value)) binding.mutable_param()->set_real(*real);
    if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
      binding.mutable_param()->set_integer(*integer);
    }
  }
  return node;
}

inline v1::Node copy(const std::string& name, const View& source, const View& destination) {
  v1::Node node;
  node.set_name(name);
  to_message(source, *node.mutable_copy()->mutable_source());
  to_message(destination, *node.mutable_copy()->mutable_destination());
  return node;
}

inline v1::Stage stage(v1::Node node) {
  v1::Stage out;
  *out.mutable_node() = std::move(node);
  return out;
}

inline v1::Stage group(const std::vector<std::vector<v1::Node>>& branches) {
  v1::Stage out;
  out.mutable_group();
  for (const std::vector<v1::Node>& branch : branches) {
    v1::Branch& message = *out.mutable_group()->add_branches();
    for (const v1::Node& node : branch) *message.add_nodes() = node;
  }
  return out;
}

// A group as an item of a branch.
inline v1::Node inner_group(const std::vector<std::vector<v1::Node>>& branches) {
  v1::Node node;
  *node.mutable_group() = group(branches).group();
  return node;
}

struct Cells {
  View count;
  std::optional<View> baseline = std::nullopt;
  bool negated = false;
};

template <typename Message>
void fill_conditional(Message& message, const Cells& guard, const std::vector<v1::Stage>& body) {
  to_message("count", guard.count, *message.mutable_guard()->mutable_count());
  if (guard.baseline) to_message("baseline", *guard.baseline, *message.mutable_guard()->mutable_baseline());
  message.mutable_guard()->set_negated(guard.negated);
  for (const v1::Stage& one : body) *message.add_body() = one;
}

inline v1::Node skippable(const std::string& name, const Cells& guard, const std::vector<v1::Stage>& body) {
  v1::Node node;
  node.set_name(name);
  fill_conditional(*node.mutable_skippable(), guard, body);
  return node;
}

inline v1::Node repeat_while(const std::string& name, const Cells& guard, const std::vector<v1::Stage>& body,
                             std::int64_t max_iterations,
                             const std::optional<View>& iterations = std::nullopt) {
  v1::Node node;
  node.set_name(name);
  fill_conditional(*node.mutable_repeat_while(), guard, body);
  node.mutable_repeat_while()->set_max_iterations(max_iterations);
  if (iterations) to_message("iterations", *iterations, *node.mutable_repeat_while()->mutable_iterations());
  return node;
}

class Description {
public:
  // A fresh C-contiguous array on a plane of its own.
  View array(std::vector<std::int64_t> shape, DType dtype = DType::f64) {
    const View view = plane::testing::array(std::move(shape), dtype, 0, planes());
    declare(static_cast<std::uint64_t>(plane::elements(view)) * view.item_bytes)
        .mutable_plane()
        ->set_id(100 + view.plane);
    return view;
  }
  View private_array(std::vector<std::int64_t> shape, DType dtype = DType::f64) {
    const View view = plane::testing::array(std::move(shape), dtype, 0, planes());
    declare(static_cast<std::uint64_t>(plane::elements(view)) * view.item_bytes).mutable_private_memory();
    return view;
  }

  std::uint32_t kernel(kernel::KernelBuilder& builder) {
    const StatusOr<kernel::Kernel> finished = builder.finish();
    EXPECT_TRUE(finished.ok()) << finished.status().to_string();
    if (finished.ok()) kernel::to_message(*finished, *message.add_kernels());
    return static_cast<std::uint32_t>(message.kernels_size() - 1);
  }
  // y = x + x, and y += x with y as state.
  std::uint32_t double_kernel() {
    kernel::KernelBuilder builder("double");
    const auto x = builder.scalar("x");
    builder.output("y", builder.add(x, x));
    return kernel(builder);
  }
  std::uint32_t accumulate_kernel() {
    kernel::KernelBuilder builder("accumulate");
    const auto x = builder.scalar("x");
    const auto y = builder.state("y", {});
    builder.commit("y", builder.add(x, y));
    return kernel(builder);
  }
  // t += dt until t >= 1.
  std::uint32_t finishing_kernel() {
    kernel::KernelBuilder builder("finishing");
    const auto dt = builder.param("dt");
    const auto t = builder.state("t", {});
    builder.terminated("done");
    const auto next = builder.add(t, dt);
    builder.commit("t", next);
    builder.commit("done", builder.ge(next, builder.real(1.0)));
    return kernel(builder);
  }

  Description& add(v1::Node node) {
    *message.add_stages() = stage(std::move(node));
    return *this;
  }
  Description& add_group(const std::vector<std::vector<v1::Node>>& branches) {
    *message.add_stages() = group(branches);
    return *this;
  }

  [[nodiscard]] StatusOr<Graph> try_read(PrivateKernelPlanes planes = PrivateKernelPlanes::refused,
                                         const Limits& limits = {}) const {
    return read(message, planes, limits);
  }
  // The graph of a description that must read.
  [[nodiscard]] Graph graph() const {
    StatusOr<Graph> out = try_read();
    EXPECT_TRUE(out.ok()) << out.status().to_string();
    return out.ok() ? std::move(out).value() : Graph{};
  }

  v1::GraphDescription message;

private:
  [[nodiscard]] std::uint32_t planes() const { return static_cast<std::uint32_t>(message.planes_size()); }
  v1::PlaneDeclaration& declare(std::uint64_t bytes) {
    v1::PlaneDeclaration& plane = *message.add_planes();
    plane.set_label("array" + std::to_string(message.planes_size() - 1));
    plane.set_bytes(bytes);
    return plane;
  }
};

}  // namespace eagle::graph::testing
