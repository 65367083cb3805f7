// A graph run as directly as it can be, for tests: kernels by the interpreter, on memory that the test holds.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/diff/emit.h"
#include "engine/graph/graph.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/reduce_reference.h"
#include "engine/plane/copy_view.h"
#include "engine/plane/view.h"

namespace eagle::diff::testing {

using graph::Graph;
using plane::View;

class Machine {
public:
  std::vector<std::vector<std::byte>> planes;
  std::map<std::uint32_t, std::function<void()>> calls;

  // Memory for each plane of the graph; what is there stays.
  void provide(const Graph& graph) {
    planes.resize(std::max(planes.size(), graph.planes.size()));
    for (std::size_t i = 0; i < graph.planes.size(); ++i) {
      if (planes[i].size() < graph.planes[i].bytes) planes[i].resize(graph.planes[i].bytes);
    }
  }

  void run(const Graph& graph) {
    for (const graph::Stage& stage : graph.stages) run(graph, stage.branches);
  }

  [[nodiscard]] std::byte* at(const View& view) { return planes.at(view.plane).data() + view.offset; }

  // Elements in the order of axes.
  [[nodiscard]] std::vector<double> values(const View& view) {
    std::vector<double> out;
    for_each_element(view, [&](std::byte* element) { out.push_back(load(view, element)); });
    return out;
  }
  void set(const View& view, const std::vector<double>& values) {
    std::size_t i = 0;
    for_each_element(view, [&](std::byte* element) { store(view, element, values.at(i++)); });
  }

private:
  static double load(const View& view, const std::byte* element) {
    switch (view.dtype) {
      case plane::DType::f64:
        return loaded<double>(element);
      case plane::DType::f32:
        return loaded<float>(element);
      case plane::DType::i64:
        return static_cast<double>(loaded<std::int64_t>(element));
      case plane::DType::i32:
        return loaded<std::int32_t>(element);
      case plane::DType::boolean:
      case plane::DType::other:
        return static_cast<double>(*element);
    }
    return 0;
  }
  static void store(const View& view, std::byte* element, double value) {
    switch (view.dtype) {
      case plane::DType::f64:
        return stored(element, value);
      case plane::DType::f32:
        return stored(element, static_cast<float>(value));
      case plane::DType::i64:
        return stored(element, static_cast<std::int64_t>(value));
      case plane::DType::i32:
        return stored(element, static_cast<std::int32_t>(value));
      case plane::DType::boolean:
      case plane::DType::other:
        *element = static_cast<std::byte>(value != 0);
    }
  }
  template <typename T>
  static T loaded(const std::byte* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  template <typename T>
  static void stored(std::byte* element, T value) {
    std::memcpy(element, &value, sizeof value);
  }

  template <typename Visit>
  void for_each_element(const View& view, const Visit& visit, std::size_t axis = 0, std::int64_t bytes = 0) {
    if (axis == view.shape.size()) return visit(at(view) + bytes);
    for (std::int64_t i = 0; i < view.shape[axis]; ++i)
      for_each_element(view, visit, axis + 1, bytes + i * view.strides[axis]);
  }

  [[nodiscard]] std::int64_t cell(const View& view) { return static_cast<std::int64_t>(values(view).at(0)); }

  void run(const Graph& graph, std::span<const graph::Branch> branches) {
    graph::for_each_leaf(branches, [&](const graph::Node& node) {
      visit_kind(node, [&](const auto& kind) { run(graph, kind); });
    });
  }
  void run(const Graph& graph, const graph::KernelLaunch& launch) {
    std::vector<kernel::InterpreterPlane> bound;
    for (const graph::Bound& argument : launch.arguments) {
      if (argument.view) {
        bound.push_back({at(*argument.view), argument.layout.component_stride, argument.layout.samples});
      } else {
        bound.push_back({reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(&argument.bits)), 0, 1});
      }
    }
    const auto result = kernel::interpret_launch(*graph.kernels[launch.kernel], bound, launch.samples, 1,
                                                 {0, launch.samples, 0});
    EXPECT_EQ(result.dropped, 0);
  }
  void run(const Graph& /*graph*/, const graph::HostNode& host) { calls.at(host.call)(); }
  void run(const Graph& /*graph*/, const graph::Reduce& reduce) {
    const int item = kernel::bytes_of(reduce.scalar);
    for (std::int64_t r = 0; r < reduce.rows; ++r) {
      std::vector<std::uint64_t> bits(static_cast<std::size_t>(reduce.samples));
      for (std::int64_t i = 0; i < reduce.samples; ++i)
        std::memcpy(&bits[static_cast<std::size_t>(i)], at(reduce.x.view) + (r * reduce.samples + i) * item,
                    static_cast<std::size_t>(item));
      const std::uint64_t result = kernel::reduce(reduce.op, reduce.scalar, bits);
      std::memcpy(at(reduce.out.view) + r * item, &result, static_cast<std::size_t>(item));
    }
  }
  void run(const Graph& /*graph*/, const graph::Copy& copy) {
    View from = copy.source;
    View to = copy.destination;
    if (copy.index) {
      View& stack = copy.into_stack() ? to : from;
      const std::int64_t row = std::clamp<std::int64_t>(cell(copy.index->view), 0, stack.shape.front() - 1);
      stack.offset += row * stack.strides.front();
      stack.shape.erase(stack.shape.begin());
      stack.strides.erase(stack.strides.begin());
    }
    if (from.dtype == plane::DType::other || from.dtype == to.dtype) {
      plane::copy_view(from, planes[from.plane].data(), to, planes[to.plane].data());
    } else {
      set(to, values(from));
    }
  }
  void run(const Graph& graph, const graph::Conditional& conditional) {
    const auto holds = [&] {
      const std::int64_t baseline = conditional.guard.baseline ? cell(conditional.guard.baseline->view) : 0;
      return (cell(conditional.guard.count.view) != baseline) != conditional.guard.negated;
    };
    const auto tell = [&](std::int64_t trips) {
      if (conditional.iterations) set(conditional.iterations->view, {static_cast<double>(trips)});
    };
    if (conditional.max_iterations == 0) {
      if (!holds()) return;
      for (const graph::Stage& stage : conditional.body) run(graph, stage.branches);
      return;
    }
    std::int64_t trips = 0;
    tell(0);
    while (trips < conditional.max_iterations && holds()) {
      for (const graph::Stage& stage : conditional.body) run(graph, stage.branches);
      tell(++trips);
    }
  }
  void run(const Graph& graph, const graph::Group& group) { run(graph, group.branches); }
};

}  // namespace eagle::diff::testing
