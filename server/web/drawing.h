// Drawings: pictures of graphs, kept while they are looked at, with what the page says about each shape.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/view/figure.h"
#include "server/loaded_graph.h"

namespace eagle::server {

// For one thread.
class Drawings {
public:
  static constexpr std::size_t kept = 8;
  static constexpr std::size_t most_nodes = 2'000;  // a page is no place for more

  struct Drawing {
    std::weak_ptr<LoadedGraph> of;
    std::string svg;      // empty: the graph is too large
    view::Figure figure;  // its nodes are those of `of`
  };
  const Drawing& of(const std::shared_ptr<LoadedGraph>& graph);

private:
  std::list<Drawing> drawings_;  // the last one looked at first
};

// A JSON object with all that the page tells of a built graph.
std::string graph_json(LoadedGraph& graph, const Drawings::Drawing& drawing);
// Of one that nobody has launched since another worker built it.
std::string graph_json(const v1::GraphDescription& description);

}  // namespace eagle::server
