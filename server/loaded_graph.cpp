#include "server/loaded_graph.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/find_edges.h"

namespace eagle::server {
namespace {

// Recursion is as deep as the engine let the description be (graph_depth).
bool has_host_node(const std::vector<graph::Stage>& stages) {
  const auto in_node = [](const graph::Node& node) {
    if (const auto* conditional = graph::as<graph::Conditional>(node)) {
      return has_host_node(conditional->body);
    }
    return graph::as<graph::HostNode>(node) != nullptr;
  };
  return std::any_of(stages.begin(), stages.end(), [&](const graph::Stage& stage) {
    bool found = false;
    graph::for_each_leaf(stage.branches, [&](const graph::Node& node) { found = found || in_node(node); });
    return found;
  });
}

}  // namespace

template <typename Description>
StatusOr<ResolvedPlanes> resolve(const Description& description, const PlaneStore& store) {
  ResolvedPlanes resolved;
  for (const v1::PlaneDeclaration& declared : description.planes()) {
    if (!declared.has_plane()) {
      resolved.memory.push_back({nullptr, declared.bytes()});
      resolved.read_only.push_back(false);
      resolved.bytes.push_back(nullptr);
      continue;
    }
    auto plane = store.find({declared.plane().id(), declared.plane().generation()});
    if (!plane.ok()) {
      return plane.status().within("planes[" + std::to_string(resolved.memory.size()) + "] ('" +
                                   declared.label() + "')");
    }
    resolved.memory.push_back({(*plane)->data(), (*plane)->size()});
    resolved.read_only.push_back((*plane)->read_only());
    resolved.bytes.push_back((*plane)->bytes());
    resolved.planes.push_back(*std::move(plane));
  }
  return resolved;
}

template StatusOr<ResolvedPlanes> resolve(const v1::GraphDescription&, const PlaneStore&);
template StatusOr<ResolvedPlanes> resolve(const v1::RunDescription&, const PlaneStore&);
template StatusOr<ResolvedPlanes> resolve(const v1::FetchRunRequest&, const PlaneStore&);

bool ResolvedPlanes::some_read_only() const {
  return std::find(read_only.begin(), read_only.end(), true) != read_only.end();
}

StatusOr<std::optional<run::cuda::PlanesOnDevice>> ResolvedPlanes::on_device() const {
  std::optional<run::cuda::PlanesOnDevice> found;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::shared_ptr<const GpuMemory> there = gpu(i);
    if (there == nullptr) continue;
    if (!found) found.emplace().unit = there->unit();
    if (found->unit->info().uuid != there->unit()->info().uuid) {
      const auto label = [&](const auto& unit) {
        const auto one = std::find_if(planes.begin(), planes.end(), [&](const auto& plane) {
          return plane->gpu() != nullptr && plane->gpu()->unit() == unit;
        });
        return "plane '" + (*one)->label() + "' lies on " + text_of(unit->info());
      };
      return Status(Reason::mixed_devices,
                    label(found->unit) + ", and " + label(there->unit()) +
                        "; a graph or a run is on one GPU: copy one of them to the other");
    }
  }
  if (!found) return found;
  // Whose memory it is keeps it charged.
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::shared_ptr<const GpuMemory> there = gpu(i);
    found->memory.push_back(
        there == nullptr ? nullptr : std::shared_ptr<const run::cuda::DeviceMemory>(there, &there->memory()));
  }
  return found;
}

Status refuse_write(std::uint32_t plane, std::string_view who, const ResolvedPlanes& planes) {
  if (plane >= planes.read_only.size() || !planes.read_only[plane]) return {};
  return {Reason::read_only_array,
          std::string(who) + " writes planes[" + std::to_string(plane) +
              "], which was granted to this session for reading only; write to an array "
              "of your own, or ask the owner to publish it with mode \"rw\""};
}

Status refuse_writes(const graph::Graph& graph, const ResolvedPlanes& planes) {
  if (!planes.some_read_only()) return {};
  for (const graph::Leaf& leaf : graph::leaves(graph)) {
    for (const auto& written : leaf.touches.writes) {
      EAGLE_RETURN_IF_ERROR(refuse_write(written.view.plane, "node '" + leaf.node->label + "'", planes));
    }
  }
  return {};
}

// The description has been verified: its indices are good.
Status refuse_writes(const v1::RunDescription& run, const ResolvedPlanes& planes) {
  if (!planes.some_read_only()) return {};
  for (const v1::KernelLaunch& launch : run.model()) {
    const v1::Kernel& kernel = run.kernels(static_cast<int>(launch.kernel()));
    for (const v1::Binding& binding : launch.bindings()) {
      const auto argument =
          std::find_if(kernel.arguments().begin(), kernel.arguments().end(),
                       [&](const v1::Argument& one) { return one.name() == binding.argument(); });
      const bool only_read = argument == kernel.arguments().end() || argument->role() == v1::ROLE_READ ||
                             argument->role() == v1::ROLE_TABLE || argument->role() == v1::ROLE_PARAM;
      if (only_read || !binding.has_view()) continue;
      EAGLE_RETURN_IF_ERROR(
          refuse_write(binding.view().plane(), "argument '" + binding.argument() + "'", planes));
    }
  }
  for (const v1::HostStep& step : run.host_steps()) {
    for (const v1::NamedView& view : step.node().writes()) {
      EAGLE_RETURN_IF_ERROR(refuse_write(view.view().plane(), "a host step", planes));
    }
  }
  for (const v1::RecordedPlane& recorded : run.record().planes()) {
    EAGLE_RETURN_IF_ERROR(refuse_write(recorded.rows().plane(), "the record", planes));
  }
  return run.has_stop_steps() ? refuse_write(run.stop_steps().plane(), "the stop steps", planes) : Status();
}

Status running(std::uint64_t graph) {
  return {Reason::busy,
          "graph " + std::to_string(graph) + " is running a launch; wait for it, or build the graph twice"};
}

LoadedGraph::LoadedGraph(PlaneStore::Planes planes, std::unique_ptr<run::BuiltGraph> built,
                         std::uint64_t launches)
    : planes_(std::move(planes)),
      built_(std::move(built)),
      has_host_nodes_(has_host_node(built_->graph().stages)),
      launches_(launches) {
  auto next = planes_.begin();
  for (const graph::Plane& plane : built_->graph().planes)
    by_index_.push_back(plane.shared ? (next++)->get() : nullptr);
  std::vector<graph::Leaf> leaves = graph::leaves(built_->graph());
  nodes_ = leaves.size();
  std::vector<graph::Touches> touches;
  touches.reserve(nodes_);
  for (graph::Leaf& leaf : leaves) {
    for (const graph::NamedView& written : leaf.touches.writes) {
      const graph::Plane& plane = built_->graph().planes[written.view.plane];
      if (plane.shared) add_range(written_, *plane.shared, written.view);
    }
    touches.push_back(std::move(leaf.touches));
  }
  footprint_ = Footprint::of(touches, bytes_of(by_index_));
  for (const auto& plane : planes_) {
    if (plane->gpu() != nullptr) gpu_ = plane->gpu()->unit()->info().uuid;
  }
}

Status LoadedGraph::check_planes() const {
  for (const auto& plane : planes_) {
    if (plane->released()) return unknown_plane(plane->id()).within("plane '" + plane->label() + "'");
  }
  return {};
}

bool LoadedGraph::has_torn_planes() const {
  return std::any_of(planes_.begin(), planes_.end(), [](const auto& plane) { return plane->torn().any(); });
}

TornMarks LoadedGraph::torn_marks() const { return server::torn_marks(by_index_); }

Status LoadedGraph::check_torn() const {
  if (!has_torn_planes()) return {};
  const TornMarks torn = torn_marks();
  const graph::TornOutlook outlook = graph::torn_outlook(built_->graph(), torn.marks);
  if (!outlook.read) return {};
  return torn_read("node '" + outlook.read->node + "'", outlook.read->argument,
                   torn.what_of(outlook.read->number));
}

void LoadedGraph::note_whole_replay() const {
  if (!has_torn_planes()) return;
  const TornMarks torn = torn_marks();
  torn.drop(graph::torn_outlook(built_->graph(), torn.marks).rewritten);
}

std::string LoadedGraph::mark_torn() const {
  TornText text;
  std::set<Plane*> changed;
  for (const graph::Leaf& leaf : graph::leaves(built_->graph())) {
    // What a callable stores is in its own process's hands.
    if (graph::as<graph::HostNode>(*leaf.node) != nullptr) continue;
    for (const graph::NamedView& written : leaf.touches.writes) {
      Plane* const plane = by_index_[written.view.plane];
      if (plane == nullptr) continue;  // nobody else computes on it
      const std::string what = "'" + written.name + "' of node '" + leaf.node->label + "'";
      plane->torn().mark(written.view, what);
      text.add(what);
      changed.insert(plane);
    }
  }
  for (Plane* const plane : changed) plane->write_down_torn();
  return text.text();
}

std::uint64_t LoadedGraph::released_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& plane : planes_) {
    if (plane->released()) bytes += plane->size();
  }
  return bytes;
}

StatusOr<std::vector<graph::Edge>> LoadedGraph::edges(const Limits& limits, const GivenUp& given_up) const {
  // Edges grow with the square of what the nodes touch.
  std::size_t touches = 0;
  for (const graph::Leaf& leaf : graph::leaves(built_->graph())) {
    touches += leaf.touches.reads.size() + leaf.touches.writes.size();
  }
  if (touches > limits.edge_touches) {
    return Status(Reason::quota, "the nodes of this graph touch " + std::to_string(touches) +
                                     " views, and the daemon lists the edges of at most " +
                                     std::to_string(limits.edge_touches) +
                                     " (edge_touches); derive them in the client, by the same code");
  }
  return graph::find_edges(built_->graph(), given_up);
}

Status LoadedGraph::update(std::uint64_t id, const std::vector<graph::ParamUpdate>& updates,
                           const std::function<Status()>& then) {
  if (!begin_launch()) return running(id);
  Status done = built_->update(updates);
  if (done.ok() && then) done = then();
  end_launch(0);
  return done;
}

void LoadedGraph::note_in(Ledger* ledger, std::uint64_t session, const GraphHash& hash) {
  ledger_ = ledger;
  session_ = session;
  hash_ = hash;
}

void LoadedGraph::computes(bool now) {
  if (ledger_ == nullptr) return;
  if (!line_) line_ = ledger_->note(session_, hash_, written_);
  line_->computes(now, !gpu_.empty());
}

void LoadedGraph::end_launch(std::int64_t whole_replays) {
  line_.reset();
  launches_.fetch_add(static_cast<std::uint64_t>(whole_replays), std::memory_order_relaxed);
  busy_.store(false, std::memory_order_release);
}

}  // namespace eagle::server
