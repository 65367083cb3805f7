// What each sample gives to the maxima and minima of a kernel.
#include <utility>
#include <vector>

#include "engine/kernel/copier.h"
#include "engine/kernel/diff/request.h"

namespace eagle::kernel::diff {
namespace {

// What the kernel commits to its extremes, by the values of now.
std::vector<ValueId> given(const Kernel& kernel, const Primal& primal) {
  std::vector<ValueId> values;
  std::size_t yield = 0;
  for (const Argument& argument : kernel.arguments) {
    if (!is_committed(argument.role)) continue;
    const ValueId committed = primal.now(kernel.body.yields[yield++]);
    if (is_extreme(argument)) values.push_back(committed);
  }
  return values;
}

std::vector<ValueId> given_by_stopped(const Kernel& kernel, Writer& w) {
  std::vector<ValueId> values;
  for (const Argument& argument : kernel.arguments) {
    if (!is_extreme(argument)) continue;
    const Scalar scalar = argument.type.scalar;
    values.push_back(w.constant(scalar, neutral_bits(argument.reduce, scalar)));
  }
  return values;
}

}  // namespace

StatusOr<Derivative> terms(const Kernel& kernel, const Limits& limits) {
  Writer w(kernel);
  Primal primal(kernel, w, false);
  Signature signature(kernel, primal, w);
  signature.declare_inputs();
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const Argument& argument = kernel.arguments[a];
    if (is_extreme(argument)) signature.declare(Part::term, a, Role::output, argument.type);
  }
  const ValueId mask = signature.mask();
  if (mask == none) {
    primal.ops(kernel.body);
    return signature.finish(w.end(given(kernel, primal)), "terms", limits);
  }
  w.begin();
  Region stopped = w.end(given_by_stopped(kernel, w));
  w.begin();
  primal.map(entries_of(kernel)[static_cast<std::size_t>(kernel.terminated_argument())], w.boolean(false));
  primal.ops(kernel.body);
  Region running = w.end(given(kernel, primal));
  return signature.finish(w.end(w.branch(mask, std::move(stopped), std::move(running))), "terms", limits);
}

}  // namespace eagle::kernel::diff
