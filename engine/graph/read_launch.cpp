// Reads one kernel launch: binds every argument and checks what the planes must have in common.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/graph.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"

namespace eagle::graph {
namespace {

using kernel::Argument;
using kernel::Kernel;
using kernel::quote_name;

// "'x', 'v' and 't'", cut where a kernel has very many.
std::string list_of_arguments(const Kernel& kernel) {
  constexpr std::size_t most = 40;
  const std::size_t shown = std::min(most, kernel.arguments.size());
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    out += quote_name(kernel.arguments[i].name);
  }
  if (shown < kernel.arguments.size()) {
    out += " and " + std::to_string(kernel.arguments.size() - shown) + " more";
  }
  return out;
}

class LaunchReader {
public:
  LaunchReader(const Kernel& kernel, const std::vector<kernel::Access>& accesses,
               const std::vector<Plane>& planes, std::string_view where, PrivateKernelPlanes private_planes)
      : kernel_(kernel),
        accesses_(accesses),
        planes_(planes),
        where_(where),
        private_planes_(private_planes) {}

  StatusOr<KernelLaunch> read(const v1::KernelLaunch& message) {
    launch_.kernel = message.kernel();
    launch_.arguments.resize(kernel_.arguments.size());
    EAGLE_RETURN_IF_ERROR(bind_all(message));
    EAGLE_RETURN_IF_ERROR(check_samples());
    EAGLE_RETURN_IF_ERROR(check_overlaps());
    return std::move(launch_);
  }

private:
  [[nodiscard]] std::string here(const Argument& argument) const {
    return std::string(where_) + ": argument " + quote_name(argument.name);
  }

  [[nodiscard]] Status bad_binding(const std::string& what) const {
    return {Reason::bad_binding, std::string(where_) + ": " + what + "; kernel " + quote_name(kernel_.name) +
                                     " takes " + list_of_arguments(kernel_)};
  }

  Status bind_all(const v1::KernelLaunch& message) {
    std::vector<bool> bound(kernel_.arguments.size());
    std::size_t next = 0;
    for (const v1::Binding& binding : message.bindings()) {
      EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(binding, where_));
      const std::optional<std::size_t> found = find(binding.argument(), next++);
      if (!found) return bad_binding("there is no argument " + quote_name(binding.argument()));
      if (bound[*found]) return bad_binding("argument " + quote_name(binding.argument()) + " is bound twice");
      bound[*found] = true;
      EAGLE_RETURN_IF_ERROR(bind(binding, *found));
    }
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (!bound[i]) return bad_binding("argument " + quote_name(kernel_.arguments[i].name) + " is missing");
    }
    return {};
  }

  // The argument of this name; `likely` is where it is if bindings come in the order of arguments.
  std::optional<std::size_t> find(std::string_view name, std::size_t likely) {
    const std::vector<Argument>& arguments = kernel_.arguments;
    if (likely < arguments.size() && arguments[likely].name == name) return likely;
    if (index_.empty()) {
      for (std::size_t i = 0; i < arguments.size(); ++i) index_.emplace(arguments[i].name, i);
    }
    const auto found = index_.find(name);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

  Status bind(const v1::Binding& binding, std::size_t index) {
    const Argument& argument = kernel_.arguments[index];
    Bound& bound = launch_.arguments[index];
    const bool takes_plane = kernel::has_plane(argument.role);
    switch (binding.value_case()) {
      case v1::Binding::kView:
        if (takes_plane) return bind_view(binding.view(), argument, bound);
        return {Reason::wrong_type, here(argument) + " is a Param: expected a number, found an array"};
      case v1::Binding::kParam:
        if (!takes_plane) return bind_param(binding.param(), argument, bound);
        return {Reason::wrong_type,
                here(argument) + ": expected an array, found a number; only a Param takes one"};
      case v1::Binding::VALUE_NOT_SET:
        break;
    }
    return {Reason::malformed_graph, here(argument) + ": expected an array or a number, found neither"};
  }

  // Where it stands is spelled out for a refusal only: most are fine, and there are thousands.
  Status bind_view(const v1::View& message, const Argument& argument, Bound& bound) const {
    const bool fine = bind_view_at(message, argument, bound, {}).ok();
    return fine ? Status() : bind_view_at(message, argument, bound, here(argument));
  }

  Status bind_view_at(const v1::View& message, const Argument& argument, Bound& bound,
                      std::string_view at) const {
    EAGLE_ASSIGN_OR_RETURN(plane::View view, read_view(message, planes_, at));
    if (private_planes_ == PrivateKernelPlanes::refused) {
      EAGLE_RETURN_IF_ERROR(refuse_private(planes_[view.plane], at, "the kernel"));
    }
    if (argument.role == kernel::Role::reduce) {
      EAGLE_ASSIGN_OR_RETURN(bound.layout, plane::layout_of_one(view, argument.type, at));
    } else if (kernel::is_indexed(argument.role)) {
      EAGLE_ASSIGN_OR_RETURN(bound.layout, plane::layout_of_table(view, argument, at));
    } else {
      EAGLE_ASSIGN_OR_RETURN(bound.layout, plane::layout_of(view, argument.type, at));
    }
    bound.view = std::move(view);
    return {};
  }

  Status bind_param(const v1::ParamValue& message, const Argument& argument, Bound& bound) const {
    const bool fine = bind_param_at(message, argument, bound, {}).ok();
    return fine ? Status() : bind_param_at(message, argument, bound, here(argument));
  }

  static Status bind_param_at(const v1::ParamValue& message, const Argument& argument, Bound& bound,
                              std::string_view at) {
    EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, at));
    EAGLE_ASSIGN_OR_RETURN(const Number number, read_number(message, at));
    EAGLE_ASSIGN_OR_RETURN(bound.bits, param_bits(number, argument, at));
    return {};
  }

  Status check_samples() {
    const Argument* first = nullptr;
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i) {
      const Bound& bound = launch_.arguments[i];
      if (!kernel::is_per_sample(kernel_.arguments[i].role)) continue;
      if (first == nullptr) {
        first = &kernel_.arguments[i];
        launch_.samples = bound.layout.samples;
      } else if (bound.layout.samples != launch_.samples) {
        return {Reason::sample_mismatch,
                std::string(where_) + ": arguments " + quote_name(first->name) + " and " +
                    quote_name(kernel_.arguments[i].name) + " have different numbers of samples, " +
                    std::to_string(launch_.samples) + " and " + std::to_string(bound.layout.samples) +
                    "; the arrays of one launch need the same N"};
      }
    }
    return {};
  }

  // Samples run in any order and at the same time, so what one sample writes must not be read or written
  // by another. To read and write the very same elements is fine: that is an update in place. Two arguments
  // that write them would undo each other. A table is read at any index and an accumulator added to, so
  // nothing else of the launch may write or read theirs.
  Status check_overlaps() const {
    for (std::size_t out = 0; out < accesses_.size(); ++out) {
      if (!accesses_[out].written) continue;
      for (std::size_t other = 0; other < accesses_.size(); ++other) {
        const kernel::Access& access = accesses_[other];
        // A pair of outputs is looked at once.
        if (other == out || (access.written && other < out)) continue;
        if (access.read || access.written) EAGLE_RETURN_IF_ERROR(check_overlap(other, out, access.written));
      }
    }
    return {};
  }

  Status check_overlap(std::size_t other, std::size_t out, bool both_written) const {
    const plane::View& a = *launch_.arguments[other].view;
    const plane::View& b = *launch_.arguments[out].view;
    if (a.plane != b.plane || !plane::overlap(a, b).overlaps) return {};
    const bool same = same_elements(other, out);
    if (same && !both_written) return {};
    const std::string one = quote_name(kernel_.arguments[other].name);
    const std::string two = quote_name(kernel_.arguments[out].name);
    if (same) {
      return {Reason::plane_overlap,
              std::string(where_) + ": the outputs " + one + " and " + two + " are one array, " +
                  plane::to_string(a) +
                  ": what is stored to one of them would be lost; give each an array of "
                  "its own"};
    }
    return {Reason::plane_overlap,
            std::string(where_) + ": " + (both_written ? "the outputs " : "the input ") + one +
                (both_written ? " and " : " and the output ") + two +
                " share some, but not all, of their bytes: " + plane::to_string(a) + " and " +
                plane::to_string(b) + "; give " +
                (both_written ? "each an array of its own"
                              : "the output an array of its own, or bind the very same array to both to "
                                "update it in place (a table or an accumulator never is)")};
  }

  [[nodiscard]] bool same_elements(std::size_t left, std::size_t right) const {
    const Bound& a = launch_.arguments[left];
    const Bound& b = launch_.arguments[right];
    for (const std::size_t i : {left, right}) {
      if (!kernel::is_per_sample(kernel_.arguments[i].role)) return false;
    }
    const kernel::Type& type_a = kernel_.arguments[left].type;
    const kernel::Type& type_b = kernel_.arguments[right].type;
    return a.view->offset == b.view->offset && a.view->dtype == b.view->dtype &&
           a.layout.component_stride == b.layout.component_stride &&
           type_a.components() == type_b.components();
  }

  const Kernel& kernel_;
  const std::vector<kernel::Access>& accesses_;
  const std::vector<Plane>& planes_;
  std::string_view where_;
  PrivateKernelPlanes private_planes_;
  KernelLaunch launch_;
  std::unordered_map<std::string_view, std::size_t> index_;  // made when it is first needed
};

}  // namespace

StatusOr<Number> read_number(const v1::ParamValue& message, std::string_view where) {
  switch (message.value_case()) {
    case v1::ParamValue::kReal:
      return Number(message.real());
    case v1::ParamValue::kInteger:
      return Number(std::int64_t{message.integer()});
    case v1::ParamValue::VALUE_NOT_SET:
      break;
  }
  return Status(Reason::malformed_graph, std::string(where) + ": expected a number, found none");
}

StatusOr<std::uint32_t> read_kernel_index(const v1::KernelLaunch& message, std::size_t kernels,
                                          std::string_view where) {
  if (message.kernel() < kernels) return message.kernel();
  return Status(Reason::malformed_graph, std::string(where) + ": refers to kernel " +
                                             std::to_string(message.kernel()) + " of a description with " +
                                             std::to_string(kernels));
}

StatusOr<KernelLaunch> read_launch_of(const v1::KernelLaunch& message, const Kernel& kernel,
                                      const std::vector<kernel::Access>& accesses,
                                      const std::vector<Plane>& planes, std::string_view where,
                                      PrivateKernelPlanes private_planes) {
  EAGLE_RETURN_IF_ERROR(refuse_unknown_fields(message, where));
  return LaunchReader(kernel, accesses, planes, where, private_planes).read(message);
}

StatusOr<KernelLaunch> read_launch(const v1::KernelLaunch& message,
                                   const std::vector<std::shared_ptr<const Kernel>>& kernels,
                                   const std::vector<Plane>& planes, std::string_view where,
                                   PrivateKernelPlanes private_planes) {
  EAGLE_ASSIGN_OR_RETURN(const std::uint32_t index, read_kernel_index(message, kernels.size(), where));
  const Kernel& kernel = *kernels[index];
  return read_launch_of(message, kernel, kernel::accesses(kernel), planes, where, private_planes);
}

}  // namespace eagle::graph
