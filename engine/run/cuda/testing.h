// Graphs on the CPU and on a device, from the same bytes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/random_graph.h"
#include "engine/graph/testing.h"
#include "engine/run/cuda/device_graph.h"
#include "engine/run/cuda/pretend.h"
#include "engine/run/testing.h"

namespace eagle::run::cuda::testing {

using Bytes = std::vector<std::vector<std::byte>>;  // by plane

// Planes of a description, as large as it says, each byte 0.
inline Bytes planes_of(const v1::GraphDescription& message) {
  Bytes planes;
  for (const v1::PlaneDeclaration& plane : message.planes()) planes.emplace_back(plane.bytes());
  return planes;
}

template <typename T>
void put(Bytes& planes, const plane::View& view, const std::vector<T>& values) {
  std::memcpy(planes[view.plane].data() + view.offset, values.data(), values.size() * sizeof(T));
}

inline std::vector<PlaneMemory> memory_of(Bytes& planes) {
  std::vector<PlaneMemory> memory;
  for (auto& plane : planes) memory.push_back({plane.data(), plane.size()});
  return memory;
}

// What a client's node does here: bytes that are never part of a NaN.
inline void play_host(const graph::HostNode& host, Bytes& planes) {
  for (const graph::NamedView& written : host.writes) {
    int next = static_cast<int>(host.call);
    for (const std::int64_t at : plane::testing::bytes_touched(written.view)) {
      planes[written.view.plane][static_cast<std::size_t>(at)] = static_cast<std::byte>(next % 0x3f);
      next += 7;
    }
  }
}

inline void find_hosts(const std::vector<graph::Stage>& stages, std::vector<const graph::HostNode*>& hosts) {
  for (const graph::Stage& stage : stages) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (const auto* host = graph::as<graph::HostNode>(node)) hosts.push_back(host);
      if (const auto* conditional = graph::as<graph::Conditional>(node)) find_hosts(conditional->body, hosts);
    });
  }
}
inline const graph::HostNode& host_of(const graph::Graph& graph, std::uint32_t call) {
  std::vector<const graph::HostNode*> hosts;
  find_hosts(graph.stages, hosts);
  for (const graph::HostNode* host : hosts) {
    if (host->call == call) return *host;
  }
  ADD_FAILURE() << "no host node " << call;
  return *hosts.at(0);
}

// Each host node gets a number of its own, those of bodies and groups too.
inline void number_calls(google::protobuf::RepeatedPtrField<v1::Stage>& stages, std::uint32_t& next);
inline void number_calls(v1::Node& node, std::uint32_t& next) {
  if (node.has_host()) node.mutable_host()->set_call(next++);
  if (node.has_skippable()) number_calls(*node.mutable_skippable()->mutable_body(), next);
  if (node.has_repeat_while()) number_calls(*node.mutable_repeat_while()->mutable_body(), next);
  if (!node.has_group()) return;
  for (auto& branch : *node.mutable_group()->mutable_branches()) {
    for (v1::Node& inner : *branch.mutable_nodes()) number_calls(inner, next);
  }
}
inline void number_calls(google::protobuf::RepeatedPtrField<v1::Stage>& stages, std::uint32_t& next) {
  for (v1::Stage& stage : stages) {
    if (stage.has_node()) number_calls(*stage.mutable_node(), next);
    if (!stage.has_group()) continue;
    for (auto& branch : *stage.mutable_group()->mutable_branches()) {
      for (v1::Node& inner : *branch.mutable_nodes()) number_calls(inner, next);
    }
  }
}
inline void number_calls(google::protobuf::RepeatedPtrField<v1::Stage>& stages) {
  std::uint32_t next = 0;
  number_calls(stages, next);
}

// Values for the planes of a random description: reals in the first three, cells of guards in the fourth.
inline Bytes random_planes(const v1::GraphDescription& message, std::mt19937_64& random) {
  Bytes planes = planes_of(message);
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    for (std::size_t word = 0; word + 8 <= planes[plane].size(); word += 8) {
      const double real = static_cast<double>(random() % 2000) / 1000 - 1;
      const std::int64_t cell = static_cast<std::int64_t>(random() % 2);
      if (plane < 3) std::memcpy(planes[plane].data() + word, &real, 8);
      if (plane == 3) std::memcpy(planes[plane].data() + word, &cell, 8);
    }
  }
  return planes;
}

// A random description whose host nodes have numbers, and values for its planes.
struct RandomGraph {
  explicit RandomGraph(std::mt19937_64& random) : d(graph::testing::random_description(random)) {
    number_calls(*d.message.mutable_stages());
    planes = random_planes(d.message, random);
  }
  graph::testing::Description d;
  Bytes planes;
};

struct Ran {
  std::vector<std::int64_t> iterations;
  KernelCounts counts;
};

inline Ran run_on_cpu(BuiltGraph& built, Bytes& planes, std::int64_t count) {
  Replay replay(built, count, nullptr);
  while (true) {
    const auto next = eagle::testing::advance(replay);
    EXPECT_TRUE(next.ok()) << next.status().to_string();
    if (!next.ok() || *next == Replay::Next::done) return {replay.iterations(), replay.counts()};
    play_host(host_of(built.graph(), replay.call()), planes);
  }
}

inline Status write_all(const DeviceGraph& device, const Bytes& planes) {
  for (std::uint32_t i = 0; i < planes.size(); ++i) EAGLE_RETURN_IF_ERROR(device.write(i, planes[i]));
  return {};
}
inline Status read_all(const DeviceGraph& device, Bytes& planes) {
  for (std::uint32_t i = 0; i < planes.size(); ++i) EAGLE_RETURN_IF_ERROR(device.read(i, planes[i]));
  return {};
}

// The client's part with the planes brought over and back.
inline StatusOr<codegen::DeviceCounts> run_on_device(DeviceGraph& device, const graph::Graph& graph,
                                                     Bytes& planes, std::int64_t count) {
  EAGLE_RETURN_IF_ERROR(write_all(device, planes));
  EAGLE_RETURN_IF_ERROR(device.launch(count));
  while (true) {
    EAGLE_ASSIGN_OR_RETURN(const DeviceGraph::Next next, device.advance());
    EAGLE_RETURN_IF_ERROR(read_all(device, planes));
    if (next == DeviceGraph::Next::done) return device.take_counts();
    play_host(host_of(graph, device.call()), planes);
    EAGLE_RETURN_IF_ERROR(write_all(device, planes));
  }
}

// Compared as bytes, but that a NaN of doubles equals any other.
inline std::string difference(const Bytes& wanted, const Bytes& found) {
  for (std::size_t plane = 0; plane < wanted.size(); ++plane) {
    for (std::size_t at = 0; at < wanted[plane].size(); ++at) {
      if (wanted[plane][at] == found[plane][at]) continue;
      double cpu = 0, gpu = 0;
      const std::size_t word = at / 8 * 8;
      if (word + 8 <= wanted[plane].size()) {
        std::memcpy(&cpu, wanted[plane].data() + word, 8);
        std::memcpy(&gpu, found[plane].data() + word, 8);
        if (std::isnan(cpu) && std::isnan(gpu)) continue;
      }
      return "plane " + std::to_string(plane) + ", byte " + std::to_string(at) + ": CPU " +
             std::to_string(cpu) + ", GPU " + std::to_string(gpu);
    }
  }
  return {};
}

// A device of the driver that EAGLE_CUDA_DRIVER names.
class DeviceTest : public ::testing::Test {
protected:
  DeviceModules& modules() {
    if (modules_ == nullptr) {
      const auto driver = Driver::open();
      EXPECT_TRUE(driver.ok()) << driver.status().to_string();
      const auto device = Device::open(*driver, 0);
      EXPECT_TRUE(device.ok()) << device.status().to_string();
      modules_ = std::make_unique<DeviceModules>(*device, compiler_);
    }
    return *modules_;
  }
  Engine& engine() {
    if (engine_ == nullptr) engine_ = eagle::testing::make_engine(1);
    return *engine_;
  }

  // Launches the description on both, from these planes; they get what the CPU made of them.
  void expect_same(const v1::GraphDescription& message, Bytes& planes, std::int64_t count = 1,
                   const LoweringOptions& options = {}) {
    const auto built = engine().build(message, memory_of(planes));
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const auto device = DeviceGraph::build(modules(), (*built)->graph(), {}, options);
    ASSERT_TRUE(device.ok()) << device.status().to_string();
    expect_same(**built, **device, planes, count);
  }
  // `built` is over `planes`.
  void expect_same(BuiltGraph& built, DeviceGraph& device, Bytes& planes, std::int64_t count) {
    Bytes found = planes;
    const auto counts = run_on_device(device, built.graph(), found, count);
    ASSERT_TRUE(counts.ok()) << counts.status().to_string();
    const Ran ran = run_on_cpu(built, planes, count);
    EXPECT_EQ(difference(planes, found), "");
    EXPECT_EQ(device.iterations(), ran.iterations);
    EXPECT_EQ(device.launches(), count);
    EXPECT_EQ(counts->clamped, ran.counts.clamped);
    EXPECT_EQ(counts->dropped, ran.counts.dropped);
  }

  codegen::Compiler compiler_;
  std::unique_ptr<DeviceModules> modules_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace eagle::run::cuda::testing
