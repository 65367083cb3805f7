// Kernels made of kernels: what stepping (engine/step) needs beside the kernel as its author wrote it. Each
// takes a kernel that verified and gives one that verifies; arguments that are added come last, so the index
// of every other argument stays.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel {

// With a finish mask `name` that this kernel never sets: samples that others finished are skipped. For
// kernels without one.
Kernel with_mask(const Kernel& kernel, const std::string& name);

// With an i64 state `name` that gets the number of the step (step_index() + 1) in which the sample finishes,
// and else keeps its value. For kernels with a mask.
Kernel with_stop_step(const Kernel& kernel, const std::string& name);

// A name that no argument of the kernel has: `wanted`, or that with underscores behind it.
std::string free_name(const Kernel& kernel, std::string_view wanted);

// ---- dispatch groups: switches that the author named

struct Group {
  std::string name;
  DispatchPolicy policy = DispatchPolicy::automatic;
  std::size_t branches = 0;
  std::vector<std::size_t> weights;  // of the branches: scalar values that each computes
};
// In the order of the kernel's text, nested ones included.
std::vector<Group> groups_of(const Kernel& kernel);

// How groups that their author left open are to run.
struct PolicyChoice {
  std::string group;  // its name, or "kernel.group"; empty: all
  DispatchPolicy policy = DispatchPolicy::automatic;
};
// What the group of a kernel of this name is to do: the last choice that is for it, or what its author said,
// which no choice overrides. `used`, one a choice: set for those that name it.
DispatchPolicy chosen_policy(const Group& group, std::string_view kernel,
                             const std::vector<PolicyChoice>& choices, std::vector<bool>& used);
// Ok where every choice is a policy and each that names a group was used; `known`: the groups that `owner`
// ("the model") has.
Status check_choices(std::string_view owner, const std::vector<PolicyChoice>& choices,
                     const std::vector<bool>& used, const std::vector<std::string>& known);

// With these policies, one a group, in the order of `groups_of`.
Kernel with_policies(const Kernel& kernel, const std::vector<DispatchPolicy>& policies);

// What each sample would select, without running the branches: a kernel that reads what it needs of
// `kernel`'s planes and writes nothing of them. Its last arguments are one i64 output a group: the clamped
// selector, or -1 where the sample does not come to the group in this step. Groups inside loops have none and
// are left out.
struct Selectors {
  Kernel kernel;
  std::vector<std::size_t>
      arguments;                    // of `kernel`'s: the original's argument that each of the first ones is
  std::vector<std::size_t> groups;  // that each output is for, as indices into groups_of
};
Selectors selectors_of(const Kernel& kernel);

}  // namespace eagle::kernel
