// Random graphs for tests of the picture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/testing.h"

namespace eagle::view::testing {

class RandomGraph {
public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed) {
    arrays_ = 1 + below(14);
    const int stages = 1 + below(9);
    for (int i = 0; i < stages; ++i) {
      if (below(3) == 0) {
        sketch_.add_group(branches(0));
      } else {
        sketch_.add(node(0));
      }
    }
  }
  [[nodiscard]] const graph::Graph& graph() const { return sketch_.graph(); }

private:
  int below(int limit) { return static_cast<int>(std::uniform_int_distribution<int>(0, limit - 1)(random_)); }

  std::vector<std::vector<graph::Node>> branches(int depth) {
    std::vector<std::vector<graph::Node>> made(2 + below(3));
    for (std::vector<graph::Node>& branch : made) {
      const int nodes = 1 + below(4);
      for (int i = 0; i < nodes; ++i) {
        const bool group = depth < 2 && below(6) == 0;
        branch.push_back(group ? Sketch::inner_group(branches(depth + 1)) : node(0));
      }
    }
    return made;
  }

  graph::Node node(int depth) {
    std::string label = "n" + std::to_string(count_++) + std::string(below(12), 'x');
    switch (depth < 2 ? below(8) : 7) {
      case 0:
        return sketch_.conditional(std::move(label), node(depth + 1), below(2) * 10);
      case 1: {
        std::vector<graph::Stage> body;
        const int stages = 1 + below(3);
        for (int i = 0; i < stages; ++i) body.push_back(Sketch::stage(node(depth + 1)));
        if (below(2) == 0)
          body.push_back(Sketch::group({{node(depth + 1)}, {node(depth + 1), node(depth + 1)}}));
        return sketch_.conditional(std::move(label), std::move(body), 5);
      }
      case 2:
        return sketch_.kernel(std::move(label), array(), array());
      default:
        return sketch_.host(std::move(label), views(), views());
    }
  }

  std::string array() { return std::string(1, static_cast<char>('a' + below(arrays_))); }

  Sketch::Views views() {
    Sketch::Views made;
    for (int i = below(3); i > 0; --i) {
      std::string view = array();
      if (below(3) == 0) {
        const int first = below(8);
        view += "[" + std::to_string(first) + ":" + std::to_string(first + 1 + below(8 - first)) + "]";
      }
      made.push_back(std::move(view));
    }
    return made;
  }

  std::mt19937_64 random_;
  Sketch sketch_;
  int arrays_ = 1;
  int count_ = 0;
};

}  // namespace eagle::view::testing
