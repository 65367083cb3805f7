// Kernels and descriptions for tests of what runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/engine.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/wire.h"
#include "engine/run/built_graph.h"

namespace eagle::testing {

inline kernel::Kernel finish(kernel::KernelBuilder& builder) {
  StatusOr<kernel::Kernel> kernel = builder.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? *std::move(kernel) : kernel::Kernel{};
}

// y = a*x + b
inline kernel::Kernel affine() {
  kernel::KernelBuilder k("affine");
  const auto a = k.param("a");
  const auto b = k.param("b");
  const auto x = k.scalar("x");
  k.output("y", k.add(k.mul(a, x), b));
  return finish(k);
}

// x <- a*x + b
inline kernel::Kernel affine_in_place() {
  kernel::KernelBuilder k("affine_in_place");
  const auto a = k.param("a");
  const auto b = k.param("b");
  const auto x = k.state("x", {});
  k.commit("x", k.add(k.mul(a, x), b));
  return finish(k);
}

// n <- n + step, integers
inline kernel::Kernel counter() {
  kernel::KernelBuilder k("counter");
  const auto step = k.integer_param("step");
  const auto n = k.state("n", {kernel::Scalar::i64});
  k.commit("n", k.add(n, step));
  return finish(k);
}

// One step of explicit Euler: x and v at once, then time; finished when t >= t_end.
inline kernel::Kernel oscillator() {
  kernel::KernelBuilder k("oscillator");
  const auto x = k.state("x", {});
  const auto v = k.state("v", {});
  const auto t = k.state("t", {});
  const auto omega = k.scalar("omega");
  const auto dt = k.param("dt");
  const auto t_end = k.scalar("t_end");
  k.terminated("done");
  const auto acceleration = k.mul(k.mul(k.mul(dt, omega), omega), x);
  k.commit("x", k.add(x, k.mul(dt, v)));
  k.commit("v", k.sub(v, acceleration));
  const auto later = k.add(t, dt);
  k.commit("t", later);
  k.commit("done", k.ge(later, t_end));
  return finish(k);
}

// A plane that covers one array whole.
struct Array {
  std::uint32_t plane = 0;
  v1::DType dtype = v1::DTYPE_F64;
  std::int64_t elements = 0;
  std::int64_t bytes = 8;
};

inline void set_view(v1::View& view, const Array& array) {
  view.set_plane(array.plane);
  view.set_dtype(array.dtype);
  view.set_item_bytes(static_cast<std::uint32_t>(array.bytes));
  view.add_shape(array.elements);
  view.add_strides(array.bytes);
}

// One element of an array.
inline void set_cell(v1::NamedView& named, const std::string& name, const Array& array, std::int64_t index) {
  named.set_name(name);
  set_view(*named.mutable_view(), array);
  named.mutable_view()->set_offset(index * array.bytes);
  named.mutable_view()->set_shape(0, 1);
}

using Given = std::variant<Array, double, std::int64_t>;
using Arguments = std::initializer_list<std::pair<const char*, Given>>;

inline void fill(v1::KernelLaunch& launch, std::uint32_t kernel, Arguments arguments) {
  launch.set_kernel(kernel);
  for (const auto& [name, given] : arguments) {
    v1::Binding& binding = *launch.add_bindings();
    binding.set_argument(name);
    if (const auto* array = std::get_if<Array>(&given)) {
      set_view(*binding.mutable_view(), *array);
    } else if (const auto* real = std::get_if<double>(&given)) {
      binding.mutable_param()->set_real(*real);
    } else {
      binding.mutable_param()->set_integer(std::get<std::int64_t>(given));
    }
  }
}

// A description under construction (v1::GraphDescription or v1::RunDescription) and the memory behind its
// planes, which stays the test's.
template <typename Message>
struct Scene {
  Message message;
  std::vector<run::PlaneMemory> memory;

  std::uint32_t kernel(const kernel::Kernel& k) {
    kernel::to_message(k, *message.add_kernels());
    return static_cast<std::uint32_t>(message.kernels_size()) - 1;
  }

  // std::uint8_t stands for bool.
  template <typename T>
  Array array(std::vector<T>& values) {
    constexpr v1::DType dtype = std::is_same_v<T, double>         ? v1::DTYPE_F64
                                : std::is_same_v<T, float>        ? v1::DTYPE_F32
                                : std::is_same_v<T, std::int64_t> ? v1::DTYPE_I64
                                : std::is_same_v<T, std::int32_t> ? v1::DTYPE_I32
                                                                  : v1::DTYPE_BOOL;
    static_assert(dtype != v1::DTYPE_BOOL || std::is_same_v<T, std::uint8_t>);
    const std::uint64_t bytes = values.size() * sizeof(T);
    v1::PlaneDeclaration& plane = *message.add_planes();
    plane.mutable_private_memory();
    plane.set_bytes(bytes);
    plane.set_label("array" + std::to_string(memory.size()));
    memory.push_back({reinterpret_cast<std::byte*>(values.data()), bytes});
    return {static_cast<std::uint32_t>(memory.size()) - 1, dtype, static_cast<std::int64_t>(values.size()),
            static_cast<std::int64_t>(sizeof(T))};
  }
};

using GraphScene = Scene<v1::GraphDescription>;
using RunScene = Scene<v1::RunDescription>;

inline v1::Node& add_node(v1::GraphDescription& graph, const std::string& name) {
  v1::Node& node = *graph.add_stages()->mutable_node();
  node.set_name(name);
  return node;
}

// Pieces of work (run::Slice) that are as short as they can be, and those that end with their work.
constexpr double least_pieces = 0;
constexpr double whole_pieces = 1e9;

// An engine that may run over the test's own arrays.
inline std::unique_ptr<Engine> make_engine(int threads, Engine::Options options = {}) {
  options.threads = threads;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  StatusOr<std::unique_ptr<Engine>> engine = Engine::create(std::move(options));
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  return engine.ok() ? *std::move(engine) : nullptr;
}

// Goes on until the launch is done, a host node is reached, or it failed.
inline StatusOr<run::Replay::Next> advance(run::Replay& replay) {
  StatusOr<run::Replay::Next> next = replay.advance();
  while (next.ok() && *next == run::Replay::Next::again) next = replay.advance();
  return next;
}

// A whole launch of a graph without host nodes.
inline std::vector<std::int64_t> launch(run::BuiltGraph& graph, std::int64_t count = 1) {
  run::Replay replay(graph, count, nullptr);
  const StatusOr<run::Replay::Next> next = advance(replay);
  EXPECT_TRUE(next.ok()) << next.status().to_string();
  EXPECT_TRUE(!next.ok() || *next == run::Replay::Next::done) << "a host node was reached";
  EXPECT_EQ(replay.launches(), count);
  return replay.iterations();
}

inline std::unique_ptr<run::BuiltGraph> build(Engine& engine, const GraphScene& scene) {
  StatusOr<std::unique_ptr<run::BuiltGraph>> built = engine.build(scene.message, scene.memory);
  EXPECT_TRUE(built.ok()) << built.status().to_string();
  return built.ok() ? *std::move(built) : nullptr;
}

}  // namespace eagle::testing
