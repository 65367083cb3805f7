#include "client/remote_planes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "client/departing_owners.h"
#include "client/plane_registry.h"
#include "engine/plane/stagger.h"
#include "engine/run/cuda/foreign_memory.h"

namespace eagle {

class RemotePlanes::RangeBuffer final : public Buffer {
public:
  RangeBuffer(std::shared_ptr<RemotePlanes> planes, SharedPlane segment, const SegmentPool::Range& range,
              std::uint64_t bytes)
      : Buffer(segment->memory.data() + range.offset, bytes),
        planes_(std::move(planes)),
        segment_(std::move(segment)),
        range_(range) {}
  ~RangeBuffer() override {
    PlaneRegistry::of_process().remove(*this);
    planes_->give_back(range_);
  }

private:
  std::shared_ptr<RemotePlanes> planes_;
  SharedPlane segment_;
  SegmentPool::Range range_;
};

class RemotePlanes::PlaneBuffer final : public Buffer {
public:
  PlaneBuffer(std::shared_ptr<PlaneSource> source, PlaneSource::Plane plane, std::uint64_t offset,
              std::uint64_t bytes)
      : Buffer(plane.memory.data() + offset, bytes, source->copies(),
               plane.device ? plane.device->name : std::string()),
        source_(std::move(source)),
        plane_(std::move(plane)) {}
  ~PlaneBuffer() override {
    PlaneRegistry::of_process().remove(*this);
    if (source_->forked()) {
      static_cast<void>(opened_.release());  // the driver is the parent's
      return;
    }
    opened_.reset();  // before the daemon may free it
    source_->release_plane(std::move(plane_));
  }

  StatusOr<DeviceAddress> on_device() override {
    if (!plane_.device) return Buffer::on_device();
    const std::scoped_lock lock(opening_);
    if (opened_ == nullptr) {
      EAGLE_ASSIGN_OR_RETURN(auto memory, source_->open_on_device(plane_));
      opened_ = std::make_unique<const run::cuda::DeviceMemory>(std::move(memory));
    }
    const run::cuda::DeviceInfo& info = opened_->device()->info();
    return DeviceAddress{opened_->address(), info.ordinal, info.uuid, nullptr};
  }

private:
  std::shared_ptr<PlaneSource> source_;
  PlaneSource::Plane plane_;
  std::mutex opening_;
  std::unique_ptr<const run::cuda::DeviceMemory> opened_;
};

// Its owner is kept until the daemon has closed the memory, which nobody waits for here.
class RemotePlanes::ImportedBuffer final : public Buffer {
public:
  ImportedBuffer(std::shared_ptr<PlaneSource> source, PlaneSource::Plane plane, const ImportedMemory& memory,
                 run::cuda::DeviceInfo gpu)
      : Buffer(plane.memory.data(), memory.bytes, false, plane.device->name),
        source_(std::move(source)),
        plane_(std::move(plane)),
        memory_(memory),
        gpu_(std::move(gpu)) {}
  ~ImportedBuffer() override {
    PlaneRegistry::of_process().remove(*this);
    if (source_->forked()) {
      // The parent's, and so is what its owner frees.
      static_cast<void>(new std::shared_ptr<const void>(std::move(memory_.owner)));
      return;
    }
    UniqueFd until_closed = std::move(plane_.until_closed);
    source_->release_plane(std::move(plane_));
    keep_until_closed(std::move(until_closed), std::move(memory_.owner));
  }
  StatusOr<DeviceAddress> on_device() override {
    return DeviceAddress{memory_.pointer, gpu_.ordinal, gpu_.uuid, nullptr};
  }

private:
  std::shared_ptr<PlaneSource> source_;
  PlaneSource::Plane plane_;
  ImportedMemory memory_;
  const run::cuda::DeviceInfo gpu_;
};

StatusOr<PlaneSource::Plane> PlaneSource::import_plane(const run::cuda::DeviceHandle& /*handle*/,
                                                       std::string_view /*label*/) {
  return Status(Reason::bad_value, "import: this session takes no memory of a GPU");
}

StatusOr<run::cuda::DeviceMemory> PlaneSource::open_on_device(const Plane& plane) {
  return Status(Reason::bad_value, "plane " + std::to_string(plane.id.id) + " is not on a GPU");
}

// Buffers are owners of this object, so what is left is the spare segment at most.
RemotePlanes::~RemotePlanes() { close(); }

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate(std::uint64_t bytes, std::string_view label,
                                                         Contents contents) {
  bytes = std::max<std::uint64_t>(bytes, 1);  // an empty array has an address too
  // A range of a copy that is used again would have to be cleared at the daemon.
  return bytes < own_plane_from && !source_->copies() ? allocate_range(bytes, label, contents)
                                                      : allocate_plane(bytes, label, contents);
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate_on(std::string_view device, std::uint64_t bytes,
                                                            std::string_view label) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane, source_->create_plane(bytes, label, device));
  return adopt(std::move(plane), bytes, label);
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::import(const ImportedMemory& memory, std::string_view label) {
  EAGLE_ASSIGN_OR_RETURN(const auto found, run::cuda::foreign_memory(memory.pointer, memory.bytes));
  EAGLE_ASSIGN_OR_RETURN(const auto handle, run::cuda::handle_of(found));
  EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane, source_->import_plane(handle, label));
  const graph::PlaneId id = plane.id;
  const auto buffer = std::make_shared<ImportedBuffer>(source_, std::move(plane), memory, found.gpu);
  PlaneRegistry::of_process().add(
      *buffer, {session_, id, memory.bytes, 0, std::string(label), buffer, buffer->device(), true});
  return std::shared_ptr<Buffer>(buffer);
}

std::optional<RemotePlanes::Taken> RemotePlanes::take(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = pool_.take(bytes);
  if (!found) return std::nullopt;
  return Taken{*found, segments_.at(found->segment)};
}

// The daemon may take long to make a segment: arrays go meanwhile, and so may the process, by a fork.
StatusOr<RemotePlanes::Taken> RemotePlanes::take_or_grow(std::uint64_t bytes) {
  if (auto found = take(bytes)) return *std::move(found);
  const std::scoped_lock one_at_a_time(growing_);
  for (;;) {
    if (auto found = take(bytes)) return *std::move(found);
    std::uint64_t size = 0;
    {
      const std::scoped_lock lock(mutex_);
      size = next_segment_bytes(bytes);
    }
    EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane, source_->create_plane(size, "segment"));
    auto segment = std::make_shared<PlaneSource::Plane>(std::move(plane));
    const std::scoped_lock lock(mutex_);
    segments_[pool_.add_segment(size)] = std::move(segment);
  }
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate_range(std::uint64_t bytes, std::string_view label,
                                                               Contents contents) {
  EAGLE_ASSIGN_OR_RETURN(const Taken taken, take_or_grow(plane::staggered(bytes)));
  const auto& [range, segment] = taken;
  if (contents == Contents::zeros)  // it may have had an owner before
    std::memset(segment->memory.data() + range.offset, 0, range.bytes);
  source_->renew(segment->id, range.offset, range.bytes);
  const auto buffer = std::make_shared<RangeBuffer>(shared_from_this(), segment, range, bytes);
  PlaneRegistry::of_process().add(
      *buffer, {session_, segment->id, segment->memory.bytes(), range.offset, std::string(label), buffer});
  return std::shared_ptr<Buffer>(buffer);
}

std::uint64_t RemotePlanes::next_segment_bytes(std::uint64_t bytes) const {
  std::uint64_t size = first_segment_bytes;
  for (std::size_t i = 0; i < segments_.size() && size < segment_bytes; ++i) size *= 4;
  return bytes <= size ? size : segment_bytes;  // ranges are smaller than own_plane_from
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate_plane(std::uint64_t bytes, std::string_view label,
                                                               Contents contents) {
  // Always the same for arrays of one size, so that the daemon can use the memory again.
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - plane::stagger::page;
  const std::uint64_t plane_bytes = std::min(bytes, most) + plane::stagger::page;
  EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane, source_->create_plane(plane_bytes, label));
  const std::uint64_t offset = plane::stagger_of(own_planes_.fetch_add(1, std::memory_order_relaxed));
  if (plane.uncleared && contents == Contents::zeros) std::memset(plane.memory.data() + offset, 0, bytes);
  return adopt(std::move(plane), bytes, label, offset);
}

std::shared_ptr<Buffer> RemotePlanes::adopt(PlaneSource::Plane plane, std::uint64_t bytes,
                                            std::string_view label, std::uint64_t offset) {
  const graph::PlaneId id = plane.id;
  const std::uint64_t plane_bytes = plane.memory.bytes();
  const auto buffer = std::make_shared<PlaneBuffer>(source_, std::move(plane), offset, bytes);
  PlaneRegistry::of_process().add(*buffer,
                                  {session_, id, plane_bytes, offset, std::string(label), buffer, {}, true});
  return buffer;
}

void RemotePlanes::give_back(const SegmentPool::Range& range) {
  if (source_->forked()) return;
  std::optional<SegmentPool::SegmentId> empty;
  {
    const std::scoped_lock lock(mutex_);
    empty = pool_.give_back(range);
  }
  if (empty) drop(*empty);
}

void RemotePlanes::close() {
  if (source_->forked()) return;
  std::optional<SegmentPool::SegmentId> spare;
  {
    const std::scoped_lock lock(mutex_);
    spare = pool_.drop_spare();
  }
  if (spare) drop(*spare);
}

void RemotePlanes::drop(SegmentPool::SegmentId segment) {
  SharedPlane plane;
  {
    const std::scoped_lock lock(mutex_);
    plane = std::move(segments_.extract(segment).mapped());
  }
  source_->release_plane(std::move(*plane));
}

}  // namespace eagle
