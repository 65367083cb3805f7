// Derivatives of kernels for C++ clients: see engine/kernel/diff/derivative.h, whose contract this is.
//
//   StatusOr<eagle::Derivative> reverse = eagle::vjp(kernel, {.wrt = {"x"}});
//
// A derivative is launched as any kernel is: in a BoundPlan, in a graph made with GraphOptions::derivatives.
#pragma once

#include "engine/kernel/diff/derivative.h"

namespace eagle {

using kernel::diff::Derivative;
using kernel::diff::jvp;
using kernel::diff::vjp;
using DerivativeOptions = kernel::diff::Options;

}  // namespace eagle
