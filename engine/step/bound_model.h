// BoundModel: a model with its code and every address, ready to be stepped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/run/cpu/bound_launch.h"
#include "engine/run/cpu/shared_launch.h"
#include "engine/step/dispatch_rule.h"
#include "engine/step/model.h"
#include "engine/step/packed_tile.h"

namespace eagle::step {

struct BoundKernel {
  run::BoundLaunch launch;
  std::optional<run::SharedLaunch> shared;  // samples make something together: all of them in one call
  std::size_t first_reduction = 0;          // of the model's; of a kernel that shares
  std::vector<std::size_t> columns;         // by argument
  bool long_loops = false;
  // What samples would select in its dispatch groups: a launch of its own, of which the arguments from
  // `first_output` on are planes of i64 that the caller gives.
  std::optional<run::BoundLaunch> selectors;
  std::vector<std::size_t> selectors_columns;
  std::size_t first_output = 0;
  std::vector<std::size_t> selected_groups;  // by output: index into BoundModel::groups
};

struct BoundGroup {
  std::string name;
  kernel::DispatchPolicy policy = kernel::DispatchPolicy::automatic;
  std::size_t branches = 0;
  std::vector<std::size_t> weights;
  std::size_t kernel = 0;
  std::size_t kernel_weight = 0;  // scalar values of the kernel outside of the group
  bool selectable = false;        // outside of loops, so that its selectors can be looked at
};

// What samples make together: memory that is written and has no element a sample.
struct MadeMemory {
  std::byte* data = nullptr;
  std::int64_t component_stride = 0;
  int components = 1;
  std::size_t bytes = 0;  // of one component
};

struct BoundModel {
  std::vector<BoundKernel> kernels;
  std::vector<BoundGroup> groups;
  std::vector<ColumnMemory> columns;
  std::vector<MadeMemory> made;
  std::size_t mask = none;  // column
  std::int64_t samples = 0;
  bool is_shard = false;
  std::int64_t first_number = 0;      // of the first sample, in its batch
  int lanes = 1;                      // of the widest kernel
  std::int64_t bytes_per_sample = 0;  // of all columns
  bool long_loops = false;            // of some kernel

  [[nodiscard]] const std::byte* masks() const { return mask == none ? nullptr : columns[mask].data; }
};

// `code` and `selectors`: by kernel; the latter null for a kernel without groups. PRIVATE_ARRAY.
StatusOr<BoundModel> bind(const Model& model, std::span<const std::shared_ptr<const codegen::Code>> code,
                          std::span<const std::shared_ptr<const codegen::Code>> selectors,
                          std::span<const run::PlaneMemory> planes);

}  // namespace eagle::step
