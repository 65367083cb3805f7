// Graphs put together by hand, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/kernel/builder.h"

namespace eagle::view::testing {

// Makes nodes over arrays that exist as soon as they are named. An array is eight doubles, or as many as are
// named; a node names one as "x", as "x[2:4]" (two elements), or by a name of its own: "left_out=x".
class Sketch {
public:
  using Views = std::vector<std::string>;

  graph::Node host(std::string label, const Views& reads, const Views& writes,
                   graph::HostTier tier = graph::HostTier::captured) {
    return {std::move(label), graph::HostNode{0, tier, named(reads), named(writes)}, {}};
  }

  // A launch of `out = in + in` over the planes in and out.
  graph::Node kernel(std::string label, const std::string& in, const std::string& out) {
    if (graph_.kernels.empty()) {
      kernel::KernelBuilder b("double");
      const auto value = b.scalar("in");
      b.output("out", b.add(value, value));
      graph_.kernels.push_back(std::make_shared<const kernel::Kernel>(b.finish().value()));
    }
    graph::KernelLaunch launch;
    for (const std::string& array : {in, out})
      launch.arguments.push_back({named_view(array).view, {8, 64}, 0});
    launch.samples = 8;
    return {std::move(label), std::move(launch), {}};
  }

  // Once (0) or up to `max_iterations` times, if flag is not zero.
  graph::Node conditional(std::string label, std::vector<graph::Stage> body,
                          std::int64_t max_iterations = 0) {
    return {std::move(label),
            std::make_shared<const graph::Conditional>(graph::Conditional{
                {named_view("flag[0:1]"), {}, false}, std::move(body), max_iterations, std::nullopt}),
            {}};
  }
  graph::Node conditional(std::string label, graph::Node body, std::int64_t max_iterations = 0) {
    return conditional(std::move(label), std::vector<graph::Stage>{stage(std::move(body))}, max_iterations);
  }

  static graph::Stage stage(graph::Node node) { return {{graph::Branch{{std::move(node)}}}, false}; }
  static graph::Stage group(std::vector<std::vector<graph::Node>> branches) {
    graph::Stage stage{{}, true};
    for (std::vector<graph::Node>& nodes : branches) stage.branches.push_back({std::move(nodes)});
    return stage;
  }

  // As an item of a branch.
  static graph::Node inner_group(std::vector<std::vector<graph::Node>> branches) {
    return {"", graph::Group{group(std::move(branches)).branches}, {}};
  }

  Sketch& add(graph::Node node) {
    graph_.stages.push_back(stage(std::move(node)));
    return *this;
  }
  Sketch& add_group(std::vector<std::vector<graph::Node>> branches) {
    graph_.stages.push_back(group(std::move(branches)));
    return *this;
  }

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }

private:
  std::vector<graph::NamedView> named(const Views& views) {
    std::vector<graph::NamedView> result;
    for (const std::string& view : views) result.push_back(named_view(view));
    return result;
  }

  graph::NamedView named_view(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string array = equals == std::string::npos ? text : text.substr(equals + 1);
    const std::size_t bracket = array.find('[');
    std::int64_t first = 0;
    std::int64_t last = 8;
    if (bracket != std::string::npos) {
      first = std::atoi(array.c_str() + bracket + 1);
      last = std::atoi(array.c_str() + array.find(':') + 1);
    }
    const std::string name = array.substr(0, bracket);
    const auto [found, added] = planes_.try_emplace(name, static_cast<std::uint32_t>(planes_.size()));
    if (added) graph_.planes.push_back({.shared = {}, .bytes = 0, .label = name});
    std::uint64_t& bytes = graph_.planes[found->second].bytes;
    bytes = std::max(bytes, static_cast<std::uint64_t>(8 * last));
    plane::View view{found->second, 8 * first, plane::DType::f64, 8, {last - first}, {8}};
    return {equals == std::string::npos ? name : text.substr(0, equals), std::move(view)};
  }

  graph::Graph graph_;
  std::map<std::string, std::uint32_t> planes_;
};

}  // namespace eagle::view::testing
