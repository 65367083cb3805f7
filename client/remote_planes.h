// RemotePlanes: arrays in memory that a daemon owns and this process maps, or on a GPU, opens.
//
// Small arrays are ranges of shared planes ("segments"), large ones have a plane of their own, in memory of
// the host a page larger than they are, in which they begin apart from each other (engine/plane/stagger.h).
// Segments are of one session and one place, and nobody else gets them: what is published is copied out of
// one first. A range is used again, and a plane given back to the daemon, only after the last owner of its
// buffer is gone; graphs and running launches are owners. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/segment_pool.h"
#include "eagle/client/array.h"
#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/graph/graph.h"
#include "engine/plane/memory.h"
#include "engine/run/cuda/opening.h"

namespace eagle {

// Where planes come from.
class PlaneSource {
public:
  virtual ~PlaneSource() = default;
  struct Plane {
    graph::PlaneId id;
    plane::Memory memory;
    bool uncleared = false;  // it holds what an earlier plane of this session left there, and not zeros
    // On a GPU: `memory` is addresses that stand for it, and a copy of its values where they are fetched.
    struct OnDevice {
      std::string name;   // "cuda:0" of the daemon
      std::string uuid;   // of the GPU
      std::string token;  // for the handle that opens it; empty: there is none
    };
    std::optional<OnDevice> device = {};
    // Of memory that this process made: closed on the other side once the daemon has it no more.
    UniqueFd until_closed = {};
  };
  // `device`: empty for memory of the host.
  virtual StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label,
                                       std::string_view device = {}) = 0;
  // A plane over memory of a GPU that this process made, which is kept until the plane's descriptor is
  // closed.
  virtual StatusOr<Plane> import_plane(const run::cuda::DeviceHandle& handle, std::string_view label);
  // Begins to open a plane on a GPU in this process: once, since its token is good for one handle.
  virtual StatusOr<std::shared_ptr<run::cuda::Opening>> open_on_device(const Plane& plane);
  // How long somebody waits for the driver then.
  [[nodiscard]] virtual std::chrono::milliseconds driver_patience() const {
    return std::chrono::milliseconds(10'000);
  }
  // Zeros in these bytes of a plane on a GPU.
  virtual Status clear(const Plane& plane, std::uint64_t offset, std::uint64_t bytes);
  // Another number once what lies on GPUs may have gone with its worker.
  [[nodiscard]] virtual std::uint64_t worker() const { return 0; }
  // Called from destructors: does not wait for long, and has nobody to report to.
  virtual void release_plane(Plane plane) = 0;
  // These bytes of a plane are cleared and have another owner from now on: what a launch left half written
  // there is nobody's.
  virtual void renew(const graph::PlaneId& plane, std::uint64_t offset, std::uint64_t bytes) = 0;
  // The memory of its planes is a copy of the daemon's, and not shared with it.
  [[nodiscard]] virtual bool copies() const { return false; }
  // Whether this process is a forked child of the one that has the planes: nothing is given back from there,
  // and what locks guard is left alone, which threads may have held that the child does not have.
  [[nodiscard]] virtual bool forked() const { return false; }
};

class RemotePlanes : public std::enable_shared_from_this<RemotePlanes> {
public:
  // The first segments are small, for the many sessions that hold little.
  static constexpr std::uint64_t first_segment_bytes = 64u << 10;
  static constexpr std::uint64_t segment_bytes = 1u << 20;
  static constexpr std::uint64_t own_plane_from = 256u << 10;
  // On a GPU: the smallest piece of memory that others can open.
  static constexpr std::uint64_t device_segment_bytes = run::cuda::share_granularity;
  static constexpr std::uint64_t own_device_plane_from = device_segment_bytes / 2;

  RemotePlanes(std::shared_ptr<PlaneSource> source, std::shared_ptr<const std::string> session)
      : source_(std::move(source)), session_(std::move(session)) {}
  ~RemotePlanes();
  RemotePlanes(const RemotePlanes&) = delete;
  RemotePlanes& operator=(const RemotePlanes&) = delete;

  // Memory that is entered in the process's registry of planes for as long as the buffer lives.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label, Contents contents);
  StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                std::string_view label, Contents contents);
  // What Session::import_on_device says of memory.
  StatusOr<std::shared_ptr<Buffer>> import(const ImportedMemory& memory, std::string_view label);
  // The array that has a plane of this session to itself, from `offset` on.
  std::shared_ptr<Buffer> adopt(PlaneSource::Plane plane, std::uint64_t bytes, std::string_view label,
                                std::uint64_t offset = 0);

  // From now on only arrays hold planes: nothing is kept for those to come.
  void close();

private:
  class RangeBuffer;
  class PlaneBuffer;
  class ImportedBuffer;
  class Opened;
  struct Segment;

  // Of one place: what small arrays share, and what is free of it.
  struct Segments {
    Segments(std::string its_device, std::uint64_t its_worker)
        : device(std::move(its_device)),
          worker(its_worker),
          pool(device.empty() ? SegmentPool::default_alignment : run::cuda::memory_alignment) {
      // There is less of a GPU's memory, and a worker that is to be replaced waits until none is held.
      if (!device.empty()) pool.drop_spare();
    }
    const std::string device;    // empty: memory of the host
    const std::uint64_t worker;  // that has those on a GPU
    SegmentPool pool;
    std::map<SegmentPool::SegmentId, std::shared_ptr<Segment>> all;
  };
  struct Taken {
    SegmentPool::Range range;
    std::shared_ptr<Segments> place;
    std::shared_ptr<Segment> segment;
  };
  // With the lock held.
  static std::optional<Taken> take_from(const std::shared_ptr<Segments>& place, std::uint64_t bytes);
  std::optional<Taken> take(const std::string& device, std::uint64_t bytes);
  StatusOr<Taken> take_or_grow(const std::string& device, std::uint64_t bytes);
  StatusOr<Taken> take_cleared(const std::string& device, std::uint64_t bytes, Contents contents);
  StatusOr<std::shared_ptr<Buffer>> allocate_range(const std::string& device, std::uint64_t bytes,
                                                   std::string_view label, Contents contents);
  StatusOr<std::shared_ptr<Buffer>> allocate_plane(std::uint64_t bytes, std::string_view label,
                                                   Contents contents);
  // The segments of a place, with the lock held.
  std::shared_ptr<Segments>& segments_of(const std::string& device);
  // Of the next segment in memory of the host, which is to hold `bytes`: four times the last one's size, up
  // to segment_bytes.
  [[nodiscard]] std::uint64_t next_segment_bytes(std::uint64_t bytes);
  void give_back(Segments& place, const SegmentPool::Range& range);
  void drop(Segments& place, SegmentPool::SegmentId segment);

  std::shared_ptr<PlaneSource> source_;
  std::shared_ptr<const std::string> session_;
  std::atomic<std::uint64_t> own_planes_ = 0;  // that were made
  std::mutex growing_;  // one segment is made at a time; before mutex_, which nobody holds while he waits
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Segments>> places_;  // by device, however it was called
};

}  // namespace eagle
