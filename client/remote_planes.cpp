#include "client/remote_planes.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "client/departing_owners.h"
#include "client/plane_registry.h"
#include "engine/plane/stagger.h"
#include "engine/run/cuda/foreign_memory.h"

namespace eagle {

// A plane on a GPU, opened in this process with its first use.
class RemotePlanes::Opened {
public:
  Opened() = default;
  ~Opened() { close(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  StatusOr<DeviceAddress> at(std::uint64_t offset, PlaneSource& source, const PlaneSource::Plane& plane) {
    std::shared_ptr<run::cuda::Opening> opening;
    {
      const std::scoped_lock lock(mutex_);
      if (opening_ == nullptr) {
        EAGLE_ASSIGN_OR_RETURN(opening_, source.open_on_device(plane));
      }
      opening = opening_;
    }
    // Whoever comes later waits for the same call of the driver.
    const Status done =
        opening->wait(source.driver_patience(), "ask again, or copy the values instead (.numpy())");
    if (!done.ok()) return done.within("the array on " + plane.device->name + " of the daemon");
    const run::cuda::DeviceMemory& memory = opening->memory();
    const run::cuda::DeviceInfo& info = memory.device()->info();
    return DeviceAddress{memory.address() + offset, info.ordinal, info.uuid, nullptr};
  }
  void close() {
    // In a forked child the driver is the parent's.
    if (::getpid() != process_) static_cast<void>(new std::shared_ptr(std::move(opening_)));
    opening_.reset();
  }

private:
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::shared_ptr<run::cuda::Opening> opening_;
};

struct RemotePlanes::Segment {
  explicit Segment(PlaneSource::Plane its_plane) : plane(std::move(its_plane)) {}
  PlaneSource::Plane plane;
  Opened opened;
};

class RemotePlanes::RangeBuffer final : public Buffer {
public:
  RangeBuffer(std::shared_ptr<RemotePlanes> planes, const Taken& taken, std::uint64_t bytes)
      : Buffer(taken.segment->plane.memory.data() + taken.range.offset, bytes, planes->source_->copies(),
               taken.segment->plane.device ? taken.segment->plane.device->name : std::string()),
        planes_(std::move(planes)),
        taken_(taken) {}
  ~RangeBuffer() override {
    PlaneRegistry::of_process().remove(*this);
    planes_->give_back(*taken_.place, taken_.range);
  }
  StatusOr<DeviceAddress> on_device() override {
    if (device().empty()) return Buffer::on_device();
    return taken_.segment->opened.at(taken_.range.offset, *planes_->source_, taken_.segment->plane);
  }

private:
  std::shared_ptr<RemotePlanes> planes_;
  Taken taken_;
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
    opened_.close();  // before the daemon may free it
    if (!source_->forked()) source_->release_plane(std::move(plane_));
  }
  StatusOr<DeviceAddress> on_device() override {
    return plane_.device ? opened_.at(0, *source_, plane_) : Buffer::on_device();
  }

private:
  std::shared_ptr<PlaneSource> source_;
  PlaneSource::Plane plane_;
  Opened opened_;
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

StatusOr<std::shared_ptr<run::cuda::Opening>> PlaneSource::open_on_device(const Plane& plane) {
  return Status(Reason::bad_value, "plane " + std::to_string(plane.id.id) + " is not on a GPU");
}

Status PlaneSource::clear(const Plane& plane, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
  return {Reason::bad_value, "plane " + std::to_string(plane.id.id) + " is not on a GPU"};
}

// Buffers are owners of this object, so what is left is the spare segment at most.
RemotePlanes::~RemotePlanes() { close(); }

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate(std::uint64_t bytes, std::string_view label,
                                                         Contents contents) {
  bytes = std::max<std::uint64_t>(bytes, 1);  // an empty array has an address too
  // A range of a copy that is used again would have to be cleared at the daemon.
  return bytes < own_plane_from && !source_->copies() ? allocate_range({}, bytes, label, contents)
                                                      : allocate_plane(bytes, label, contents);
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate_on(std::string_view device, std::uint64_t bytes,
                                                            std::string_view label, Contents contents) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  const std::string name(device);
  if (bytes < own_device_plane_from) return allocate_range(name, bytes, label, contents);
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

std::shared_ptr<RemotePlanes::Segments>& RemotePlanes::segments_of(const std::string& device) {
  std::shared_ptr<Segments>& found = places_[device];
  const std::uint64_t worker = device.empty() ? 0 : source_->worker();
  // Those of another worker are gone; they are given up with the arrays that hold them.
  if (found == nullptr || found->worker != worker) found = std::make_shared<Segments>(device, worker);
  return found;
}

std::optional<RemotePlanes::Taken> RemotePlanes::take_from(const std::shared_ptr<Segments>& place,
                                                           std::uint64_t bytes) {
  const auto range = place->pool.take(bytes);
  if (!range) return std::nullopt;
  return Taken{*range, place, place->all.at(range->segment)};
}

std::optional<RemotePlanes::Taken> RemotePlanes::take(const std::string& device, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  return take_from(segments_of(device), bytes);
}

// The daemon may take long to make a segment: arrays go meanwhile, and so may the process, by a fork.
StatusOr<RemotePlanes::Taken> RemotePlanes::take_or_grow(const std::string& device, std::uint64_t bytes) {
  if (auto found = take(device, bytes)) return *std::move(found);
  const std::scoped_lock one_at_a_time(growing_);
  for (;;) {
    if (auto found = take(device, bytes)) return *std::move(found);
    const std::uint64_t size = device.empty() ? next_segment_bytes(bytes) : device_segment_bytes;
    EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane,
                           source_->create_plane(size, device.empty() ? "segment" : "small arrays", device));
    const std::string name = plane.device ? plane.device->name : std::string();
    std::optional<Taken> known;
    {
      const std::scoped_lock lock(mutex_);
      const std::shared_ptr<Segments> place = segments_of(name);
      places_[device] = place;
      // "cuda" and "cuda:0" are one place, as is known from now on, and it may have had room.
      if (device != name) known = take_from(place, bytes);
      if (!known) {
        place->all[place->pool.add_segment(size)] = std::make_shared<Segment>(std::move(plane));
        continue;
      }
    }
    source_->release_plane(std::move(plane));
    return *std::move(known);
  }
}

StatusOr<std::shared_ptr<Buffer>> RemotePlanes::allocate_range(const std::string& device, std::uint64_t bytes,
                                                               std::string_view label, Contents contents) {
  EAGLE_ASSIGN_OR_RETURN(const Taken taken, take_cleared(device, bytes, contents));
  const auto& [range, place, segment] = taken;
  const PlaneSource::Plane& plane = segment->plane;
  source_->renew(plane.id, range.offset, range.bytes);
  const auto buffer = std::make_shared<RangeBuffer>(shared_from_this(), taken, bytes);
  PlaneRegistry::of_process().add(*buffer, {session_, plane.id, plane.memory.bytes(), range.offset,
                                            std::string(label), buffer, buffer->device()});
  return std::shared_ptr<Buffer>(buffer);
}

// It may have had an owner before. On a GPU it is the daemon that clears it, which tells as well whether the
// segment is still there.
StatusOr<RemotePlanes::Taken> RemotePlanes::take_cleared(const std::string& device, std::uint64_t bytes,
                                                         Contents contents) {
  for (;;) {
    EAGLE_ASSIGN_OR_RETURN(Taken taken,
                           take_or_grow(device, device.empty() ? plane::staggered(bytes) : bytes));
    const SegmentPool::Range& range = taken.range;
    const PlaneSource::Plane& plane = taken.segment->plane;
    if (contents == Contents::any) return taken;
    if (device.empty()) {
      std::memset(plane.memory.data() + range.offset, 0, range.bytes);
      return taken;
    }
    const Status cleared = source_->clear(plane, range.offset, range.bytes);
    if (cleared.ok()) return taken;
    give_back(*taken.place, range);
    if (source_->worker() == taken.place->worker) return cleared;  // else it went with the one before
  }
}

std::uint64_t RemotePlanes::next_segment_bytes(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t size = first_segment_bytes;
  for (std::size_t i = 0; i < segments_of({})->all.size() && size < segment_bytes; ++i) size *= 4;
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

void RemotePlanes::give_back(Segments& place, const SegmentPool::Range& range) {
  if (source_->forked()) return;
  std::optional<SegmentPool::SegmentId> empty;
  {
    const std::scoped_lock lock(mutex_);
    empty = place.pool.give_back(range);
  }
  if (empty) drop(place, *empty);
}

void RemotePlanes::close() {
  if (source_->forked()) return;
  std::shared_ptr<Segments> host;
  std::optional<SegmentPool::SegmentId> spare;
  {
    const std::scoped_lock lock(mutex_);
    host = segments_of({});
    spare = host->pool.drop_spare();
  }
  if (spare) drop(*host, *spare);
}

void RemotePlanes::drop(Segments& place, SegmentPool::SegmentId segment) {
  std::shared_ptr<Segment> gone;
  {
    const std::scoped_lock lock(mutex_);
    gone = std::move(place.all.extract(segment).mapped());
  }
  gone->opened.close();  // before the daemon may free it
  source_->release_plane(std::move(gone->plane));
}

}  // namespace eagle
