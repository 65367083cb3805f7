#include "client/host_views.h"

#include <utility>

#include "client/plane_registry.h"
#include "client/transfers.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/wire.h"

namespace eagle {

template <typename Description>
void HostViews::add(Connection& connection, const Description& description, const v1::HostNode& node) {
  const auto collect = [&](const auto& views, std::vector<One>& into) {
    for (const v1::NamedView& view : views) {
      const v1::PlaneDeclaration& plane = description.planes(static_cast<int>(view.view().plane()));
      std::byte* const bytes = plane.has_plane() ? connection.bytes_of(plane.plane()) : nullptr;
      auto packed = plane::Packed::of(graph::unchecked_view(view.view()));
      if (bytes == nullptr || !packed.ok()) continue;
      const auto array =
          PlaneRegistry::of_process().find(connection.state.name(), bytes + view.view().offset(), 0);
      if (!array || !array->keep_alive->copied()) continue;  // the memory is shared
      // Who works on the GPU has the memory itself.
      if (graph::works_on_gpu(node) && !array->keep_alive->device().empty()) continue;
      One one{{}, bytes, *std::move(packed)};
      *one.slice.mutable_plane() = plane.plane();
      *one.slice.mutable_view() = view.view();
      one.slice.mutable_view()->set_plane(0);
      into.push_back(std::move(one));
    }
  };
  Call call;
  collect(node.reads(), call.reads);
  collect(node.writes(), call.writes);
  if (!call.reads.empty() || !call.writes.empty()) calls_.insert_or_assign(node.call(), std::move(call));
}

template <typename Description>
void HostViews::add(Connection& connection, const Description& description, const v1::Node& node) {
  if (node.has_host()) add(connection, description, node.host());
  add_stages(connection, description, node.skippable().body());
  add_stages(connection, description, node.repeat_while().body());
}

template <typename Description, typename Stages>
void HostViews::add_stages(Connection& connection, const Description& description, const Stages& stages) {
  for (const v1::Stage& stage : stages) {
    if (stage.has_node()) add(connection, description, stage.node());
    for (const v1::Branch& branch : stage.group().branches()) {
      for (const v1::Node& node : branch.nodes()) add(connection, description, node);
    }
  }
}

HostViews::HostViews(Connection& connection, const v1::GraphDescription& description) {
  add_stages(connection, description, description.stages());
}

HostViews::HostViews(Connection& connection, const v1::RunDescription& description) {
  for (const v1::HostStep& step : description.host_steps()) add(connection, description, step.node());
}

// What a callable writes only in part keeps its other values, hence its writes are fetched too.
Status HostViews::fetch_reads(Connection& connection, std::uint32_t call,
                              const TransferProgress& progress) const {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return {};
  std::vector<std::byte> packed;
  for (const auto* views : {&found->second.reads, &found->second.writes}) {
    for (const One& one : *views) {
      packed.resize(one.packed.bytes());
      EAGLE_RETURN_IF_ERROR(fetch_slice(connection, "host node", one.slice, packed, progress));
      one.packed.write(one.plane, 0, packed);
    }
  }
  return {};
}

Status HostViews::send_writes(Connection& connection, std::uint32_t call,
                              const TransferProgress& progress) const {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return {};
  std::vector<std::byte> packed;
  for (const One& one : found->second.writes) {
    packed.resize(one.packed.bytes());
    one.packed.read(one.plane, 0, packed);
    EAGLE_RETURN_IF_ERROR(send_slice(connection, "host node", one.slice, packed, progress));
  }
  return {};
}

}  // namespace eagle
