#include "client/local_device.h"

#include <span>
#include <utility>
#include <variant>

#include "client/local_enqueued.h"
#include "client/plane_registry.h"
#include "eagle/v1/run.pb.h"
#include "engine/graph/wire.h"
#include "engine/plane/copy_view.h"
#include "engine/run/cuda/device_transfer.h"

namespace eagle {
namespace {

std::string place_of(const LocalPlane& plane) {
  return (plane.label.empty() ? "an array" : "plane '" + plane.label + "'") + " lies on " +
         text_of(plane.on_gpu()->unit()->info());
}

}  // namespace

// ---- LocalDeviceBuffer

LocalDeviceBuffer::LocalDeviceBuffer(std::shared_ptr<const run::cuda::DeviceMemory> memory,
                                     plane::Memory stand_in,
                                     std::shared_ptr<const run::cuda::Devices::Unit> unit,
                                     std::shared_ptr<LocalPlanes> planes)
    : Buffer(stand_in.data(), memory->bytes(), true, unit->name()),
      unit_(std::move(unit)),
      memory_(std::move(memory)),
      stand_in_(std::move(stand_in)),
      planes_(std::move(planes)) {}

LocalDeviceBuffer::~LocalDeviceBuffer() {
  if (id_ == 0) return;
  PlaneRegistry::of_process().remove(*this);
  planes_->leave(id_, bytes());
}

// Who has the address may do with the memory what it likes, at once.
StatusOr<DeviceAddress> LocalDeviceBuffer::on_device() {
  EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(*memory_, true));
  const run::cuda::DeviceInfo& info = memory_->device()->info();
  return DeviceAddress{memory_->address(), info.ordinal, info.uuid, memory_};
}

StatusOr<std::shared_ptr<Buffer>> own_array_of(const LocalPlanes& planes, const ImportedMemory& memory) {
  for (const std::shared_ptr<Buffer>& buffer : planes.all()) {
    if (buffer->device().empty()) continue;
    const auto& array = static_cast<const LocalDeviceBuffer&>(*buffer);
    const std::uint64_t first = array.memory()->address(), last = first + array.bytes();
    if (!array.allocated() || memory.pointer >= last || first >= memory.pointer + memory.bytes) continue;
    if (first <= memory.pointer && memory.pointer + memory.bytes <= last) return buffer;
    const std::string& label = *array.allocated();
    return Status(
        Reason::plane_overlap,
        "these " + std::to_string(memory.bytes) + " bytes share some with " +
            (label.empty() ? "an array" : "the array '" + label + "'") + " of " +
            std::to_string(array.bytes()) + " bytes on " + array.device() +
            " that the session has itself, and reach out of it; import no more than that array has");
  }
  return std::shared_ptr<Buffer>();
}

// ---- planes of a description

const LocalDeviceBuffer* LocalPlane::on_gpu() const {
  if (buffer == nullptr || buffer->device().empty()) return nullptr;
  return static_cast<const LocalDeviceBuffer*>(buffer.get());
}

StatusOr<std::optional<run::cuda::PlanesOnDevice>> planes_on_device(const std::vector<LocalPlane>& planes) {
  const LocalPlane* first = nullptr;
  for (const LocalPlane& plane : planes) {
    if (plane.on_gpu() == nullptr) continue;
    if (first == nullptr) first = &plane;
    if (plane.on_gpu()->unit() != first->on_gpu()->unit()) {
      return Status(Reason::mixed_devices,
                    place_of(*first) + ", and " + place_of(plane) +
                        "; a graph or a run is on one GPU: copy one of them to the other");
    }
  }
  std::optional<run::cuda::PlanesOnDevice> found;
  if (first == nullptr) return found;
  found.emplace().unit = first->on_gpu()->unit();
  for (const LocalPlane& plane : planes)
    found->memory.push_back(plane.on_gpu() == nullptr ? nullptr : plane.on_gpu()->memory());
  return found;
}

Status copy_between(const plane::View& from, const LocalPlane& from_plane, const std::byte* from_data,
                    const plane::View& to, const LocalPlane& to_plane, std::byte* to_data) {
  const LocalDeviceBuffer* const source = from_plane.on_gpu();
  const LocalDeviceBuffer* const target = to_plane.on_gpu();
  for (const LocalDeviceBuffer* one : {source, target}) {
    if (one != nullptr) EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(*one->memory(), one == target));
  }
  if (source == nullptr && target == nullptr) {
    plane::copy_view(from, from_data, to, to_data);
    return {};
  }
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed reads, plane::Packed::of(from));
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed writes, plane::Packed::of(to));
  return plane::copy_packed(
      reads.bytes(),
      [&](std::uint64_t first, std::span<std::byte> into) -> Status {
        if (source != nullptr) return run::cuda::read_packed(*source->memory(), reads, first, into);
        reads.read(from_data, first, into);
        return {};
      },
      [&](std::uint64_t first, std::span<const std::byte> packed) -> Status {
        if (target != nullptr) return run::cuda::write_packed(*target->memory(), writes, first, packed);
        writes.write(to_data, first, packed);
        return {};
      });
}

// ---- LocalHostViews

LocalHostViews::LocalHostViews(const graph::Graph& graph, const std::vector<LocalPlane>& planes) {
  add(graph.stages, planes);
}

// The description has been verified: its views are good.
LocalHostViews::LocalHostViews(const v1::RunDescription& run, const std::vector<LocalPlane>& planes) {
  for (const v1::HostStep& step : run.host_steps()) {
    if (graph::works_on_gpu(step.node())) continue;
    for (const auto& [views, written] :
         {std::pair{&step.node().reads(), false}, std::pair{&step.node().writes(), true}}) {
      for (const v1::NamedView& view : *views)
        add(step.node().call(), {view.name(), graph::unchecked_view(view.view())}, written, planes);
    }
  }
}

void LocalHostViews::add(const std::vector<graph::Stage>& stages, const std::vector<LocalPlane>& planes) {
  for (const graph::Stage& stage : stages) {
    graph::for_each_leaf(std::span<const graph::Branch>(stage.branches), [&](const graph::Node& node) {
      if (const auto* conditional = graph::as<graph::Conditional>(node)) add(conditional->body, planes);
      const auto* host = graph::as<graph::HostNode>(node);
      // Who works on the GPU has the memory itself.
      if (host == nullptr || graph::works_on_gpu(host->tier)) return;
      for (const graph::NamedView& view : host->reads) add(host->call, view, false, planes);
      for (const graph::NamedView& view : host->writes) add(host->call, view, true, planes);
    });
  }
}

void LocalHostViews::add(std::uint32_t call, const graph::NamedView& named, bool written,
                         const std::vector<LocalPlane>& planes) {
  const LocalDeviceBuffer* const there = planes[named.view.plane].on_gpu();
  auto form = plane::Packed::of(named.view);
  if (there == nullptr || !form.ok()) return;
  calls_[call].push_back(
      {there->memory(), planes[named.view.plane].buffer->data(), *std::move(form), written});
}

Status LocalHostViews::fetch_reads(std::uint32_t call) const {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return {};
  std::vector<std::byte> packed;
  for (const One& one : found->second) {
    packed.resize(one.form.bytes());
    EAGLE_RETURN_IF_ERROR(run::cuda::read_packed(*one.memory, one.form, 0, packed));
    one.form.write(one.stand_in, 0, packed);
  }
  return {};
}

Status LocalHostViews::send_writes(std::uint32_t call) const {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return {};
  std::vector<std::byte> packed;
  for (const One& one : found->second) {
    if (!one.written) continue;
    packed.resize(one.form.bytes());
    one.form.read(one.stand_in, 0, packed);
    EAGLE_RETURN_IF_ERROR(run::cuda::write_packed(*one.memory, one.form, 0, packed));
  }
  return {};
}

}  // namespace eagle
