// What a session in this process has on GPUs: arrays there, which planes of a description are there, and what
// callables touch of them. For the local_*.cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/local_planes.h"
#include "eagle/client/array.h"
#include "engine/base/status.h"
#include "engine/graph/graph.h"
#include "engine/plane/memory.h"
#include "engine/plane/packed.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/graph_backend.h"

namespace eagle::v1 {
class RunDescription;
}

namespace eagle {

// On a GPU of this process: kernels and CUDA have its own address. The addresses of `stand_in` are what views
// of it are made of.
class LocalDeviceBuffer final : public Buffer {
public:
  LocalDeviceBuffer(std::shared_ptr<const run::cuda::DeviceMemory> memory, plane::Memory stand_in,
                    std::shared_ptr<const run::cuda::Devices::Unit> unit,
                    std::shared_ptr<LocalPlanes> planes);
  ~LocalDeviceBuffer() override;
  void entered(std::uint64_t id) { id_ = id; }
  // The session allocated it, and calls it that; nothing: somebody else did.
  void allocated(std::string label) { label_ = std::move(label); }
  [[nodiscard]] const std::optional<std::string>& allocated() const { return label_; }
  [[nodiscard]] const std::shared_ptr<const run::cuda::DeviceMemory>& memory() const { return memory_; }
  [[nodiscard]] const std::shared_ptr<const run::cuda::Devices::Unit>& unit() const { return unit_; }
  StatusOr<DeviceAddress> on_device() override;

private:
  std::shared_ptr<const run::cuda::Devices::Unit> unit_;
  std::shared_ptr<const run::cuda::DeviceMemory> memory_;
  plane::Memory stand_in_;
  std::shared_ptr<LocalPlanes> planes_;
  std::uint64_t id_ = 0;
  std::optional<std::string> label_;
};

// The array that the session allocated itself and that has all of these bytes, which another package may have
// got from it; null where none has any. PLANE_OVERLAP by name for bytes that leave one.
StatusOr<std::shared_ptr<Buffer>> own_array_of(const LocalPlanes& planes, const ImportedMemory& memory);

// A plane of a description.
struct LocalPlane {
  std::shared_ptr<Buffer> buffer;  // null: none of the session's
  std::string label;
  // Null: in memory of the host.
  [[nodiscard]] const LocalDeviceBuffer* on_gpu() const;
};

// Where some lie on a GPU: all of them, for a graph or a run there. MIXED_DEVICES where two lie on two GPUs,
// by the names of all four.
StatusOr<std::optional<run::cuda::PlanesOnDevice>> planes_on_device(const std::vector<LocalPlane>& planes);
// Copies what one view sees to where another one of the same shape and element size does, wherever the two
// lie. `from_data` and `to_data`: where planes of the host begin.
Status copy_between(const plane::View& from, const LocalPlane& from_plane, const std::byte* from_data,
                    const plane::View& to, const LocalPlane& to_plane, std::byte* to_data);

// What callables touch on a GPU: fetched before and sent after, as over TCP. A plane that one writes only in
// part keeps its other values.
class LocalHostViews {
public:
  LocalHostViews(const graph::Graph& graph, const std::vector<LocalPlane>& planes);
  LocalHostViews(const v1::RunDescription& run, const std::vector<LocalPlane>& planes);
  [[nodiscard]] Status fetch_reads(std::uint32_t call) const;
  [[nodiscard]] Status send_writes(std::uint32_t call) const;

private:
  struct One {
    std::shared_ptr<const run::cuda::DeviceMemory> memory;
    std::byte* stand_in = nullptr;
    plane::Packed form;
    bool written = false;
  };
  void add(const std::vector<graph::Stage>& stages, const std::vector<LocalPlane>& planes);
  void add(std::uint32_t call, const graph::NamedView& view, bool written,
           const std::vector<LocalPlane>& planes);

  std::map<std::uint32_t, std::vector<One>> calls_;
};

}  // namespace eagle
