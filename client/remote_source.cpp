// Where the planes of a session of a daemon come from: what Connection is as a PlaneSource.
#include <string>
#include <utility>

#include "client/remote_connection.h"
#include "client/transfers.h"
#include "engine/run/cuda/device_sharing.h"
#include "engine/run/cuda/devices.h"

namespace eagle {
namespace {

// These bytes, as bytes.
v1::PlaneSlice slice_of(const graph::PlaneId& plane, std::uint64_t offset, std::uint64_t bytes) {
  v1::PlaneSlice slice;
  slice.mutable_plane()->set_id(plane.id);
  slice.mutable_plane()->set_generation(plane.generation);
  slice.mutable_view()->set_offset(static_cast<std::int64_t>(offset));
  slice.mutable_view()->set_dtype(v1::DTYPE_BOOL);
  slice.mutable_view()->set_item_bytes(1);
  slice.mutable_view()->add_shape(static_cast<std::int64_t>(bytes));
  slice.mutable_view()->add_strides(1);
  return slice;
}

}  // namespace

StatusOr<PlaneSource::Plane> Connection::create_plane(std::uint64_t bytes, std::string_view label,
                                                      std::string_view device) {
  v1::CreatePlanesRequest request;
  v1::CreatePlanesRequest::Spec& spec = *request.add_planes();
  spec.set_bytes(bytes);
  spec.set_label(std::string(label));
  spec.set_may_be_uncleared(!copies_);
  spec.set_huge_pages(huge_pages_ && bytes >= least_huge_bytes);
  spec.set_device(std::string(device));
  // The daemon reserves and clears every page before it answers: no short call when there are many.
  constexpr std::uint64_t bytes_per_ms = 100'000;  // a tenth of what was measured on a slow machine
  return create_plane("allocate", request, milliseconds(bytes / bytes_per_ms));
}

StatusOr<PlaneSource::Plane> Connection::import_plane(const run::cuda::DeviceHandle& handle,
                                                      std::string_view label) {
  v1::CreatePlanesRequest request;
  v1::CreatePlanesRequest::Spec& spec = *request.add_planes();
  spec.set_bytes(handle.bytes);
  spec.set_label(std::string(label));
  v1::DeviceHandle& memory = *spec.mutable_import();
  memory.set_uuid(handle.uuid);
  memory.set_ipc(handle.ipc);
  memory.set_allocation(handle.allocation);
  memory.set_offset(handle.offset);
  memory.set_bytes(handle.bytes);
  constexpr milliseconds driver_takes{30'000};
  return create_plane("import", request, driver_takes);
}

StatusOr<PlaneSource::Plane> Connection::create_plane(const char* operation,
                                                      const v1::CreatePlanesRequest& request,
                                                      milliseconds beyond) {
  const Deadline deadline = Clock::now() + timeout;
  for (int repeats = 0;;) {
    EAGLE_RETURN_IF_ERROR(check(operation));
    auto plane = try_create_plane(operation, request, beyond);
    if (plane.ok()) return plane;
    Status outcome = plane.status();
    const bool lost = outcome.reason() == Reason::connection_lost;
    if (lost && repeats++ == most_repeats) return settle(operation, outcome);
    if (!try_again(operation, outcome, deadline)) return outcome;
  }
}

StatusOr<PlaneSource::Plane> Connection::try_create_plane(const char* operation,
                                                          const v1::CreatePlanesRequest& request,
                                                          milliseconds beyond) {
  const auto making = this->making();
  const std::shared_ptr<RemoteLink> link = this->link();
  v1::CreatePlanesReply reply;
  EAGLE_RETURN_IF_ERROR(attempt(operation, *link, &RemoteLink::Stubs::planes, &v1::Planes::Stub::Create,
                                request, reply, beyond));
  if (reply.planes_size() != 1)
    return Status(Reason::bad_message, std::string(operation) + ": the daemon made no plane");
  const v1::CreatePlanesRequest::Spec& asked = request.planes(0);
  if ((!asked.device().empty() || asked.has_import()) && reply.planes(0).device().empty()) {
    give_back({reply.planes(0).ref().id(), reply.planes(0).ref().generation(), 0});
    return Status(Reason::protocol_mismatch,
                  (asked.has_import() ? "import" : "device '" + asked.device() + "'") +
                      std::string(": this daemon has no arrays on GPUs; upgrade the daemon"));
  }
  const bool recycled = reply.recycled_size() == 1 && reply.recycled(0).id() != 0;
  auto plane = take_plane(*link, reply.planes(0), false, recycled ? &reply.recycled(0) : nullptr);
  if (!plane.ok()) return plane.status().within(operation);
  plane->uncleared = recycled;
  if (!asked.has_import()) return plane;
  // Where that fails the connection is broken, and the daemon lets go of all that the session had.
  auto closed = link->side()->fetch({reply.planes(0).token()}, Clock::now() + timeout);
  if (!closed.ok()) {
    release_plane(*std::move(plane));
    return closed.status().within(operation);
  }
  plane->until_closed = std::move(closed->front());
  return plane;
}

StatusOr<PlaneSource::Plane> Connection::take_plane(RemoteLink& link, const v1::PlaneInfo& info,
                                                    bool read_only, const v1::PlaneRef* recycled) {
  const graph::PlaneId id{info.ref().id(), info.ref().generation()};
  auto memory = map_plane(link, info, read_only, recycled);
  ++planes_;
  {
    const std::scoped_lock lock(held_mutex_);
    uses_[{id.id, id.generation}].push_back(memory.ok() ? memory->data() : nullptr);
  }
  if (!memory.ok()) {
    drop_use(id, nullptr);
    --planes_;
    return memory.status();
  }
  Plane plane{id, std::move(*memory)};
  if (info.device().empty()) return plane;
  plane.device = {info.device(), info.device_uuid(), info.token()};
  ++device_planes_;
  return plane;
}

StatusOr<plane::Memory> Connection::map_plane(RemoteLink& link, const v1::PlaneInfo& info, bool read_only,
                                              const v1::PlaneRef* recycled) {
  if (link.side() == nullptr || !info.device().empty()) return plane::Memory::stand_in(info.bytes());
  if (recycled != nullptr) {
    const std::scoped_lock lock(held_mutex_);
    auto retained = retained_.take({recycled->id(), recycled->generation()}, info.bytes());
    if (retained) return *std::move(retained);
  }
  EAGLE_ASSIGN_OR_RETURN(auto descriptors, link.side()->fetch({info.token()}, Clock::now() + timeout));
  return read_only ? plane::Memory::map_read_only(std::move(descriptors.front()), info.bytes())
                   : plane::Memory::map(std::move(descriptors.front()), info.bytes(),
                                        plane::Memory::Pages::populated);
}

Status Connection::clear(const Plane& plane, std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::byte zero{0};
  return fill_slice(*this, slice_of(plane.id, offset, bytes), bytes, {&zero, 1}).within("allocate");
}

// The GPU is looked for first: a token that was spent for nothing is good no more.
StatusOr<std::shared_ptr<run::cuda::Opening>> Connection::open_on_device(const Plane& plane) {
  const std::string what = "the array on " + plane.device->name + " of the daemon";
  EAGLE_RETURN_IF_ERROR(check(what));
  const std::shared_ptr<RemoteLink> link = this->link();
  if (link->side() == nullptr) {
    return Status(Reason::bad_value, what + " cannot be opened over TCP; copy its values (.numpy())");
  }
  const auto device = run::cuda::open_by_uuid(plane.device->uuid);
  if (!device.ok()) return device.status().within(what);
  auto handle = link->side()->fetch_device(plane.device->token, Clock::now() + timeout);
  if (!handle.ok()) return handle.status().within(what);
  auto begun =
      run::cuda::Opening::begin(*device, *std::move(handle), run::cuda::DeviceMemory::Users::packages);
  if (!begun.ok()) return begun.status().within(what);
  return begun;
}

// Over TCP a line that broke may have been a worker's death.
std::uint64_t Connection::worker() const {
  const std::shared_ptr<RemoteLink> link = this->link();
  return copies_ ? link->attachment()->times().attached : link->number();
}

void Connection::renew(const graph::PlaneId& plane, std::uint64_t offset, std::uint64_t bytes) {
  if (!failed_.load(std::memory_order_relaxed)) return;
  v1::AcceptPlanesRequest request;
  const v1::PlaneSlice slice = slice_of(plane, offset, bytes);
  *request.add_parts()->mutable_plane() = slice.plane();
  *request.mutable_parts(0)->mutable_view() = slice.view();
  tidy(&RemoteLink::Stubs::planes, &v1::Planes::Stub::Accept, request);
}

}  // namespace eagle
