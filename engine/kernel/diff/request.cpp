#include "engine/kernel/diff/request.h"

#include <algorithm>
#include <utility>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/copier.h"
#include "engine/kernel/diff/prune.h"
#include "engine/kernel/names.h"
#include "engine/kernel/transform.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel::diff {
namespace {

std::string describe(const Argument& argument) {
  return quote_name(argument.name) + " (" + std::string(name_of(argument.role)) + ", " +
         to_string(argument.type) + ")";
}

std::string names_of(const Kernel& kernel) {
  std::string names;
  for (const Argument& argument : kernel.arguments) {
    if (is_differentiable(argument) && names.size() < 1000)
      names += (names.empty() ? "" : ", ") + quote_name(argument.name);
  }
  return names.empty() ? "nothing" : names;
}

StatusOr<std::size_t> find(const Kernel& kernel, const std::string& name, const std::string& where) {
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    if (kernel.arguments[a].name == name) return a;
  }
  return Status(Reason::unknown_name, where + ": there is no argument " + quote_name(name) +
                                          "; the kernel can be differentiated by " + names_of(kernel));
}

Status check_kernel(const Kernel& kernel, const std::string& where, bool extremes) {
  bool gives = false;
  for (const Argument& argument : kernel.arguments) {
    const bool real = is_real(argument.type.scalar);
    gives = gives || (real && (is_committed(argument.role) || argument.role == Role::accum));
    if (is_extreme(argument) && !extremes) {
      return {Reason::bad_value,
              where + ": " + describe(argument) + " is the " + std::string(name_of(argument.reduce)) +
                  " of all samples, whose derivative is that of one sample, which no sample knows; return "
                  "the values "
                  "instead and reduce them with eagle.reduce, whose reverse finds the one"};
    }
  }
  if (gives) return {};
  return {Reason::bad_value,
          where +
              ": the kernel gives no real number, so that there is nothing to differentiate; expected a real "
              "output, state, accumulator or sum"};
}

bool asks_for_length(const Region& region, std::size_t argument) {
  return std::any_of(region.ops.begin(), region.ops.end(), [argument](const Op& op) {
    return (op.code == Opcode::length && op.argument == argument) ||
           std::any_of(op.regions.begin(), op.regions.end(),
                       [argument](const Region& nested) { return asks_for_length(nested, argument); });
  });
}

}  // namespace

bool is_differentiable(const Argument& argument) {
  const bool input = argument.role == Role::read || argument.role == Role::mutable_ ||
                     argument.role == Role::param || argument.role == Role::table;
  return input && is_real(argument.type.scalar);
}

bool is_extreme(const Argument& argument) {
  return argument.role == Role::reduce && argument.reduce != ReduceOp::sum && is_real(argument.type.scalar);
}

std::string_view name_of(Part part) {
  switch (part) {
    case Part::primal:
      return "primal";
    case Part::bar:
      return "bar";
    case Part::dot:
      return "dot";
    case Part::step:
      return "step";
    case Part::first:
      return "first";
    case Part::term:
      return "term";
  }
  return "?";
}

StatusOr<Request> checked_request(const Kernel& kernel, const Options& options, std::string_view what) {
  const std::string where = std::string(what) + ": kernel " + quote_name(kernel.name);
  EAGLE_RETURN_IF_ERROR(check_kernel(kernel, where, options.extremes && what == "vjp"));
  Request request;
  const std::size_t count = kernel.arguments.size();
  request.accumulate.assign(count, false);
  request.wrt.assign(count, false);
  for (const std::string& name : options.wrt) {
    EAGLE_ASSIGN_OR_RETURN(const std::size_t a, find(kernel, name, where));
    if (!is_differentiable(kernel.arguments[a])) {
      return Status(Reason::bad_value,
                    where + ": wrt names " + describe(kernel.arguments[a]) +
                        ", by which nothing can be differentiated; expected real inputs, which are " +
                        names_of(kernel));
    }
    request.wrt[a] = true;
  }
  if (options.wrt.empty()) {
    for (std::size_t a = 0; a < count; ++a) request.wrt[a] = is_differentiable(kernel.arguments[a]);
  }
  if (std::find(request.wrt.begin(), request.wrt.end(), true) == request.wrt.end()) {
    return Status(Reason::bad_value,
                  where + ": the kernel has no real input, so that there is nothing to differentiate by");
  }
  for (const std::string& name : options.accumulate) {
    EAGLE_ASSIGN_OR_RETURN(const std::size_t a, find(kernel, name, where));
    if (kernel.arguments[a].role != Role::read || !request.wrt[a]) {
      return Status(Reason::bad_value, where + ": accumulate names " + describe(kernel.arguments[a]) +
                                           "; expected an argument that is read and in wrt");
    }
    request.accumulate[a] = true;
  }
  request.unasked.assign(count, false);
  for (const std::string& name : options.unasked) {
    EAGLE_ASSIGN_OR_RETURN(const std::size_t a, find(kernel, name, where));
    request.unasked[a] = true;
  }
  return request;
}

// ---- arguments

void Signature::declare_inputs() {
  const std::vector<ValueId> entries = entries_of(kernel_);
  for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
    Argument argument = kernel_.arguments[a];
    // Of an accumulator nothing is needed but, perhaps, its length.
    if (argument.role == Role::accum && asks_for_length(kernel_.body, a)) argument.role = Role::table;
    if (entries[a] == unmapped && argument.role != Role::table) continue;
    if (argument.role == Role::mutable_ || argument.role == Role::terminated) argument.role = Role::read;
    const bool table = argument.role == Role::table;
    const std::size_t place = push(std::move(argument), {Part::primal, a, true});
    if (table) {
      primal_.table_at(a, place);
    } else if (kernel_.arguments[a].role == Role::terminated) {
      mask_ = entries_[place];
      primal_.map(entries[a], none);  // a sample that runs reads false
    } else {
      primal_.map(entries[a], entries_[place]);
    }
  }
}

std::size_t Signature::declare(Part part, std::size_t argument, Role role, const Type& type,
                               std::vector<Axis> axes) {
  Argument made;
  made.name = free_name(w_.out, std::string(name_of(part)) + "_" + kernel_.arguments[argument].name);
  made.role = role;
  made.type = type;
  made.axes = std::move(axes);
  return push(std::move(made), {part, argument, true});
}

void Signature::declare_step() {
  Argument made;
  made.name = free_name(w_.out, "step");
  made.role = Role::param;
  made.type = integer_type;
  primal_.step_is(entries_[push(std::move(made), {Part::step, 0, true})]);
}

std::size_t Signature::push(Argument argument, Plane plane) {
  ValueId entry = none;
  if (has_entry_value(argument.role)) {
    entry = w_.fresh(argument.type);
    w_.out.body.arguments.push_back(entry);
  }
  w_.out.arguments.push_back(std::move(argument));
  planes_.push_back(plane);
  entries_.push_back(entry);
  return entries_.size() - 1;
}

StatusOr<Derivative> Signature::finish(Region body, std::string_view what, const Limits& limits) {
  Kernel& made = w_.out;
  made.name = kernel_.name + "_" + std::string(what);
  made.derivative_of = kernel_.name;
  body.arguments = std::move(made.body.arguments);
  made.body = std::move(body);
  v1::Kernel message;
  to_message(pruned(made), message);
  StatusOr<Kernel> verified = verify(message, limits);
  if (!verified.ok())
    return verified.status().within(std::string(what) + ": the derivative of kernel " +
                                    quote_name(kernel_.name));
  Derivative derivative{std::move(verified).value(), std::move(planes_)};
  const std::vector<Access> used = accesses(derivative.kernel);
  for (std::size_t a = 0; a < derivative.planes.size(); ++a) {
    if (derivative.planes[a].part == Part::primal) derivative.planes[a].needed = used[a].used;
  }
  return derivative;
}

bool asks_for_step(const Region& region) {
  return std::any_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    return op.code == Opcode::step_index || std::any_of(op.regions.begin(), op.regions.end(), asks_for_step);
  });
}

}  // namespace eagle::kernel::diff
