// Fusing: kernels that run one after the other over the same samples become one kernel.
//
// A value that one of them stores and a later one loads goes from op to op without a plane between. Nothing
// is contracted or reordered, so the bits are those of the kernels one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/verify.h"

namespace eagle::kernel {

// Whether a kernel can be a part of a fused one: no mask, nothing that its samples make together, and no loop
// (which a cancel may end half way).
bool can_fuse(const Kernel& kernel);

// One kernel of several, and where its planes are.
struct FusePart {
  const Kernel* kernel = nullptr;
  // By argument, its place: arguments with equal places are the same elements of one plane, seen as the same
  // type; arguments with different places share no byte that any part writes. Ignored for Params, of which
  // every part keeps its own.
  std::vector<std::uint32_t> places;
};

struct Fused {
  Kernel kernel;
  // By argument of `kernel`: whose binding it has, an argument of a part.
  struct Origin {
    std::size_t part = 0;
    std::size_t argument = 0;
  };
  std::vector<Origin> origins;
  // By part, by argument of it: the argument of `kernel` that stands for it; `none` for a plane that is not
  // there any more.
  std::vector<std::vector<std::uint32_t>> arguments;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

// The parts in order, each of which can_fuse, all with the same real type. `dropped`, by place: its values
// are stored nowhere, since nobody else looks at them; a part writes it before any reads it. The result has
// passed the verifier; its refusal (a kernel over its limits) is the status.
StatusOr<Fused> fuse(std::span<const FusePart> parts, const std::vector<bool>& dropped,
                     const Limits& limits = {});

}  // namespace eagle::kernel
