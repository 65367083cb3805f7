// What is asked of a derivative, checked, and the arguments that it gets. Inside of this folder alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/diff/derivative.h"
#include "engine/kernel/diff/primal.h"
#include "engine/kernel/diff/writer.h"

namespace eagle::kernel::diff {

// By argument of the kernel.
struct Request {
  std::vector<bool> wrt;
  std::vector<bool> accumulate;
  std::vector<bool> unasked;
};
// `what`: "vjp" or "jvp", for errors.
StatusOr<Request> checked_request(const Kernel& kernel, const Options& options, std::string_view what);

// Declares the arguments of a derivative.
class Signature {
public:
  Signature(const Kernel& kernel, Primal& primal, Writer& w) : kernel_(kernel), primal_(primal), w_(w) {}

  // The kernel's inputs, as they are before its step. Entry values are known to `primal` afterwards.
  void declare_inputs();
  // One more argument, with the name `prefix` and that of the kernel's argument; gives its place. Its entry
  // value, where the role has one, is `entry(place)`.
  std::size_t declare(Part part, std::size_t argument, Role role, const Type& type,
                      std::vector<Axis> axes = {});
  void declare_step();

  [[nodiscard]] ValueId entry(std::size_t place) const { return entries_[place]; }
  // The mask's value, or `none`.
  [[nodiscard]] ValueId mask() const { return mask_; }
  // The derivative with this body, pruned and verified.
  StatusOr<Derivative> finish(Region body, std::string_view what, const Limits& limits);

private:
  std::size_t push(Argument argument, Plane plane);

  const Kernel& kernel_;
  Primal& primal_;
  Writer& w_;
  std::vector<Plane> planes_;
  std::vector<ValueId> entries_;
  ValueId mask_ = none;
};

// Whether the kernel uses step_index().
bool asks_for_step(const Region& region);

}  // namespace eagle::kernel::diff
