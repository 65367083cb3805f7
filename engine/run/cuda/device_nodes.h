// DeviceNodes: what a node of a graph is on a device, as kernels that run one after the other. A launch whose
// samples share is several: what notes and values of samples need beforehand, the kernel itself, and what
// puts them together (reduce_kernels.h, note_kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/codegen/device_abi.h"
#include "engine/graph/graph.h"
#include "engine/run/cuda/device.h"
#include "engine/run/cuda/device_launch.h"
#include "engine/run/cuda/device_modules.h"

namespace eagle::run::cuda {

// A word of a parameter that is an address: of a plane, so many bytes into it.
struct AddressWord {
  std::size_t word = 0;
  std::uint32_t plane = 0;
  std::int64_t offset = 0;
};

// One kernel with its parameter.
struct DeviceNode {
  std::shared_ptr<const DeviceModule> module;
  Grid grid;
  std::vector<std::uint64_t> words;
  std::vector<AddressWord> addresses;
  // Of an author's launch: its kernel, whose Params may be given other numbers.
  std::shared_ptr<const kernel::Kernel> kernel = nullptr;

  // Stores where the planes are; `planes` by number.
  void place(std::span<const api::DevicePointer> planes);
};

// What all launches have beside their planes, in device memory.
struct Beside {
  std::int64_t first_step = 0;
  codegen::DeviceCounts counts;
  codegen::DeviceCounts unseen;  // of kernels that no author wrote
  std::int64_t cancel = 0;
};

class DeviceNodes {
public:
  // `modules` outlives it. `beside`: the address of a Beside. `account` pays for what `take_scratch` gives.
  DeviceNodes(DeviceModules& modules, api::DevicePointer beside, Account account = {})
      : modules_(modules), beside_(beside), account_(std::move(account)) {}

  // Addresses of planes are still to be placed. Errors of the compiler and of memory; BAD_VALUE for a kernel
  // whose loops may add more often than there could be room for.
  StatusOr<std::vector<DeviceNode>> launch(const std::shared_ptr<const kernel::Kernel>& kernel,
                                           const graph::KernelLaunch& launch, std::int64_t max_steps = 1);
  // What samples gave to a reduction of a launch, one after the other.
  struct Values {
    std::size_t argument = 0;
    api::DevicePointer at = 0;
  };
  // Those of the last launch.
  [[nodiscard]] const std::vector<Values>& values() const { return values_; }
  StatusOr<std::vector<DeviceNode>> reduce(const graph::Reduce& reduce);
  StatusOr<std::vector<DeviceNode>> copy(const graph::Copy& copy);
  // A routine of one thread or of as many as there are elements.
  StatusOr<DeviceNode> routine(const std::string& ptx, std::vector<std::uint64_t> words,
                               std::int64_t elements = 1);

  // Where kernels look at the first step instead of at `Beside::first_step`.
  void first_step_at(api::DevicePointer address) { first_step_ = address; }
  // Samples are those from `first` on of a batch of `total`; else all of it.
  void number_samples(std::int64_t first, std::int64_t total) { numbers_ = {first, total}; }
  // A kernel of an author was not on the device before.
  [[nodiscard]] bool loaded() const { return loaded_; }
  [[nodiscard]] std::string_view arch() const { return modules_.arch(); }
  // Memory for notes and values on their way, which the nodes need for as long as they are.
  std::vector<DeviceMemory> take_scratch() { return std::move(scratch_); }
  // The nodes are those of a graph that there is, and use what was made for it; it outlives this. INTERNAL
  // where they need anything else.
  void use_scratch(std::span<const DeviceMemory> there) { there_ = there; }

  // Bytes that the notes of one launch may take where they come one after the other.
  static constexpr std::int64_t most_note_bytes = std::int64_t{1} << 30;

private:
  struct Notes;
  StatusOr<api::DevicePointer> scratch(std::int64_t bytes);
  Status make_room(const kernel::Kernel& kernel, const graph::KernelLaunch& launch, Notes& notes);
  Status clear(const kernel::Kernel& kernel, const graph::KernelLaunch& launch, const Notes& notes,
               const std::vector<Values>& values, std::vector<DeviceNode>& chain);
  Status add_notes(const kernel::Kernel& kernel, const graph::KernelLaunch& launch, const Notes& notes,
                   std::vector<DeviceNode>& chain);
  Status own(kernel::Kernel kernel, std::int64_t samples, std::vector<DeviceArgument> arguments,
             std::vector<DeviceNode>& chain);
  Status levels(kernel::ReduceOp op, kernel::Scalar scalar, bool compensated, std::int64_t rows,
                std::int64_t samples, DeviceArgument x, std::vector<DeviceNode>& chain);
  Status fill(api::DevicePointer at, kernel::Scalar scalar, std::uint64_t bits, std::int64_t count,
              std::vector<DeviceNode>& chain);
  Status add_copy(const graph::Copy& copy, std::vector<DeviceNode>& chain);

  DeviceModules& modules_;
  const api::DevicePointer beside_;
  const Account account_;
  std::optional<api::DevicePointer> first_step_;
  struct Numbers {
    std::int64_t first = 0;
    std::int64_t total = 0;
  };
  std::optional<Numbers> numbers_;
  bool loaded_ = false;
  std::vector<Values> values_;
  std::vector<DeviceMemory> scratch_;
  std::optional<std::span<const DeviceMemory>> there_;  // what is left of it
};

}  // namespace eagle::run::cuda
