#include "client/describe.h"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "client/view_table.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/kernel/wire.h"

namespace eagle {
namespace {

using Kernels = google::protobuf::RepeatedPtrField<v1::Kernel>;

// The engine refuses deep nesting by its own limit, in its own words; this bound only keeps the walk there
// from running out of stack.
constexpr int max_nesting = 1000;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// The kernels of one description, each once. Equal programs whose names differ stay apart: bindings go by
// argument name. (Their compiled code is shared all the same, by content hash.)
class KernelTable {
public:
  explicit KernelTable(Kernels& kernels) : kernels_(kernels) {}

  std::uint32_t index_of(const Kernel& kernel) {
    if (const auto known = by_address_.find(&kernel); known != by_address_.end()) return known->second;
    v1::Kernel message;
    kernel::to_message(kernel, message);
    const auto [it, fresh] =
        by_content_.try_emplace(message.SerializeAsString(), static_cast<std::uint32_t>(kernels_.size()));
    if (fresh) *kernels_.Add() = std::move(message);
    by_address_.emplace(&kernel, it->second);
    return it->second;
  }

private:
  Kernels& kernels_;
  std::unordered_map<const Kernel*, std::uint32_t> by_address_;
  std::map<std::string, std::uint32_t> by_content_;
};

bool writes(const Kernel& kernel, std::string_view argument) {
  for (const kernel::Argument& candidate : kernel.arguments) {
    if (candidate.name != argument) continue;
    return kernel::is_committed(candidate.role) || candidate.role == kernel::Role::accum;
  }
  return false;  // an unknown name: the engine says so
}

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

// Walks stages, branches and bodies, and writes the message as it goes.
class Describer {
public:
  Describer(const Host& host, Kernels& kernels) : views_(host), kernels_(kernels) {}

  Status stage(const StageSpec& spec, v1::Stage& message) {
    if (!spec.group) {
      const auto& [name, kind] = spec.branches.at(0).nodes.at(0);
      return node(name, kind, *message.mutable_node());
    }
    return branches(spec.branches, *message.mutable_group());
  }

  // `where()`: which node or kernel it is. That is spelled out for a refusal only: there are thousands of
  // nodes.
  template <typename Where>
  Status launch(const BoundPlan& plan, const Where& where, v1::KernelLaunch& message) {
    if (!plan.kernel) return {Reason::bad_value, where() + " has no kernel (null)"};
    message.set_kernel(kernels_.index_of(*plan.kernel));
    for (const auto& [name, argument] : plan.arguments) {
      v1::Binding& binding = *message.add_bindings();
      binding.set_argument(name);
      if (const auto* real = std::get_if<double>(&argument)) {
        binding.mutable_param()->set_real(*real);
      } else if (const auto* integer = std::get_if<std::int64_t>(&argument)) {
        binding.mutable_param()->set_integer(*integer);
      } else {
        const auto& array = std::get<ArrayView>(argument);
        const bool written = writes(*plan.kernel, name);
        if (!view(array, written, {}, *binding.mutable_view()).ok()) {
          const std::string subject = where() + ": argument " + quoted(name);
          binding.clear_view();
          EAGLE_RETURN_IF_ERROR(view(array, written, subject, *binding.mutable_view()));
        }
      }
    }
    return {};
  }

  template <typename Message>
  Backing finish(Message& message) {
    views_.finish([&message]() -> v1::PlaneDeclaration& { return *message.add_planes(); }, backing_);
    return std::move(backing_);
  }

  Status host_node(const Opaque& opaque, const std::string& where, v1::HostNode& message) {
    if (!opaque.call) return {Reason::wrong_type, where + " has nothing to call; give opaque() a callable"};
    message.set_call(static_cast<std::uint32_t>(backing_.calls.size()));
    backing_.calls.push_back(opaque.call);
    backing_.works.push_back(opaque.on_gpu);
    message.set_tier(static_cast<v1::HostTier>(opaque.tier));
    for (const auto& [name, array] : opaque.reads) {
      EAGLE_RETURN_IF_ERROR(named_view(name, array, false, where + ": read", *message.add_reads()));
    }
    for (const auto& [name, array] : opaque.writes) {
      EAGLE_RETURN_IF_ERROR(named_view(name, array, true, where + ": write", *message.add_writes()));
    }
    return {};
  }

  Status view(const ArrayView& array, bool written, std::string_view where, v1::View& message) {
    if (written && array.read_only) {
      return {Reason::read_only_array,
              std::string(where) +
                  " is a read-only array, and the node writes it; give it a writable array or a copy"};
    }
    return views_.add(array, where, message);
  }

private:
  Status node(const std::string& name, const NodeKind& kind, v1::Node& message) {
    message.set_name(name);
    return std::visit(
        Overloaded{[&](const BoundPlan& plan) {
                     const auto where = [&] {
                       const std::string label = plan.kernel ? plan.kernel->name : "kernel";
                       return "node " + quoted(name.empty() ? label : name);
                     };
                     return launch(plan, where, *message.mutable_kernel());
                   },
                   [&](const Opaque& opaque) {
                     return host_node(opaque, "node " + quoted(name.empty() ? "opaque" : name),
                                      *message.mutable_host());
                   },
                   [&](const Reduce& reduce) {
                     return reduce_node(reduce, "node " + quoted(name.empty() ? "reduce" : name),
                                        *message.mutable_reduce());
                   },
                   [&](const Copy& copy) {
                     return this->copy(copy, "node " + quoted(name.empty() ? "copy" : name),
                                       *message.mutable_copy());
                   },
                   [&](const Group&) -> Status {
                     return {Reason::wrong_type,
                             "a group is no node: add it with add_group, as an item of a branch, or as "
                             "a step of a conditional"};
                   },
                   [&](const std::shared_ptr<const Conditional>& conditional) {
                     return this->conditional(name, conditional, message);
                   }},
        kind);
  }

  Status reduce_node(const Reduce& reduce, const std::string& where, v1::Reduce& message) {
    message.set_op(static_cast<v1::ReduceOp>(reduce.op));
    message.set_compensated(reduce.compensated);
    EAGLE_RETURN_IF_ERROR(named_view("x", reduce.x, false, where + ": argument", *message.mutable_x()));
    return named_view("out", reduce.out, true, where + ": argument", *message.mutable_out());
  }

  Status conditional(const std::string& name, const std::shared_ptr<const Conditional>& spec,
                     v1::Node& message) {
    if (!spec)
      return {Reason::bad_value, "node " + quoted(name) + " is a conditional without content (null)"};
    const std::optional<std::int64_t> loop = spec->max_iterations;
    const std::string kind = loop ? "repeat_while" : "skippable";
    const std::string where = "node " + quoted(name.empty() ? kind : name);
    if (++nesting_ > max_nesting) {
      return {Reason::graph_limit,
              where + " lies deeper than " + std::to_string(max_nesting) + " conditionals"};
    }
    Status status;
    if (loop) {
      message.mutable_repeat_while()->set_max_iterations(*loop);
      status = content(*spec, where, *message.mutable_repeat_while());
      if (status.ok() && spec->iterations) {
        status = named_view("iterations", *spec->iterations, true, where + ": counter",
                            *message.mutable_repeat_while()->mutable_iterations());
      }
    } else {
      status = content(*spec, where, *message.mutable_skippable());
    }
    --nesting_;
    return status;
  }

  template <typename Message>  // v1::Skippable or v1::RepeatWhile
  Status content(const Conditional& spec, const std::string& where, Message& message) {
    const SkipGuard& guard = spec.guard;
    EAGLE_RETURN_IF_ERROR(named_view(guard.count.first, guard.count.second, false, where + ": guard",
                                     *message.mutable_guard()->mutable_count()));
    if (guard.baseline) {
      EAGLE_RETURN_IF_ERROR(named_view(guard.baseline->first, guard.baseline->second, false,
                                       where + ": guard baseline",
                                       *message.mutable_guard()->mutable_baseline()));
    }
    message.mutable_guard()->set_negated(guard.negated);
    for (const auto& [name, kind] : spec.body) {
      v1::Stage& stage = *message.add_body();
      if (const auto* const group = std::get_if<Group>(&kind)) {
        EAGLE_RETURN_IF_ERROR(branches(group->branches, *stage.mutable_group()));
      } else {
        EAGLE_RETURN_IF_ERROR(node(name, kind, *stage.mutable_node()));
      }
    }
    return {};
  }

  Status branches(const std::vector<BranchSpec>& specs, v1::Group& message) {
    for (const BranchSpec& branch : specs) {
      v1::Branch& branch_message = *message.add_branches();
      for (const auto& [name, kind] : branch.nodes) {
        v1::Node& item = *branch_message.add_nodes();
        if (const auto* const group = std::get_if<Group>(&kind)) {
          EAGLE_RETURN_IF_ERROR(inner_group(name, *group, *item.mutable_group()));
        } else {
          EAGLE_RETURN_IF_ERROR(node(name, kind, item));
        }
      }
    }
    return {};
  }

  Status inner_group(const std::string& name, const Group& group, v1::Group& message) {
    if (!name.empty()) {
      return {Reason::bad_value,
              "a group in a branch has no name, and " + quoted(name) + " was given; name its nodes"};
    }
    if (++nesting_ > max_nesting) {
      return {Reason::graph_limit, "a group lies deeper than " + std::to_string(max_nesting) + " others"};
    }
    EAGLE_RETURN_IF_ERROR(branches(group.branches, message));
    --nesting_;
    return {};
  }

  Status copy(const Copy& copy, const std::string& where, v1::Copy& message) {
    EAGLE_RETURN_IF_ERROR(view(copy.source, false, where + ": plane 'src'", *message.mutable_source()));
    if (copy.index) {
      EAGLE_RETURN_IF_ERROR(
          named_view("index", *copy.index, false, where + ": plane", *message.mutable_index()));
    }
    return view(copy.destination, true, where + ": plane 'dst'", *message.mutable_destination());
  }

  Status named_view(const std::string& name, const ArrayView& array, bool written, const std::string& where,
                    v1::NamedView& message) {
    message.set_name(name);
    return view(array, written, where + " " + quoted(name), *message.mutable_view());
  }

  ViewTable views_;
  KernelTable kernels_;
  Backing backing_;
  int nesting_ = 0;
};

}  // namespace

StatusOr<Backing> describe_graph(const Host& host, std::string_view name, Stages stages,
                                 v1::GraphDescription& message) {
  message.set_name(std::string(name));
  Describer describer(host, *message.mutable_kernels());
  for (const auto& stage : stages) EAGLE_RETURN_IF_ERROR(describer.stage(*stage, *message.add_stages()));
  return describer.finish(message);
}

namespace {

// What there is to run of a model, and where.
Status describe_steps(Describer& describer, std::span<const ModelStep> model, v1::RunDescription& message,
                      std::vector<std::function<step::HostAnswer()>>& calls) {
  for (const ModelStep& part : model) {
    if (const auto* plan = std::get_if<BoundPlan>(&part)) {
      const auto where = [&] {
        return plan->kernel ? "kernel " + quoted(plan->kernel->name) : std::string("simulate: a plan");
      };
      EAGLE_RETURN_IF_ERROR(describer.launch(*plan, where, *message.add_model()));
      continue;
    }
    const auto& opaque = std::get<Opaque>(part);
    v1::HostStep& step = *message.add_host_steps();
    step.set_before(static_cast<std::uint32_t>(message.model_size()));
    step.set_every(1);
    EAGLE_RETURN_IF_ERROR(describer.host_node(opaque, "opaque", *step.mutable_node()));
    step.mutable_node()->set_call(static_cast<std::uint32_t>(calls.size()));
    calls.emplace_back([call = opaque.call] { return step::HostAnswer{call(), false}; });
  }
  return {};
}

Status describe_record(Describer& describer, std::span<const ModelStep> model, const RecordOptions& record,
                       v1::Record& message) {
  message.set_every(record.every);
  message.set_initial(record.initial);
  for (const auto& [name, rows] : record.planes) {
    std::uint32_t launch = 0;
    std::optional<std::uint32_t> found;
    for (const ModelStep& part : model) {
      const auto* plan = std::get_if<BoundPlan>(&part);
      if (plan == nullptr) continue;
      for (const auto& [argument, value] : plan->arguments) {
        if (argument == name && !found && std::holds_alternative<ArrayView>(value)) found = launch;
      }
      ++launch;
    }
    if (!found) return {Reason::bad_binding, "record: the model has no plane " + quoted(name)};
    v1::RecordedPlane& plane = *message.add_planes();
    plane.set_launch(*found);
    plane.set_argument(name);
    EAGLE_RETURN_IF_ERROR(describer.view(rows, true, "record: " + quoted(name), *plane.mutable_rows()));
  }
  return {};
}

}  // namespace

StatusOr<Backing> describe_run(const Host& host, std::span<const ModelStep> model,
                               const SimulateOptions& options, v1::RunDescription& message,
                               std::vector<std::function<step::HostAnswer()>>& run_calls,
                               const NamedArrays& named,
                               google::protobuf::RepeatedPtrField<v1::NamedView>* views) {
  message.set_max_steps(options.max_steps);
  message.set_steps_per_pass(options.steps);
  if (options.shard) {
    message.mutable_shard()->set_base(options.shard->base);
    message.mutable_shard()->set_count(options.shard->count);
    message.mutable_shard()->set_of(options.shard->of);
  }
  Describer describer(host, *message.mutable_kernels());
  EAGLE_RETURN_IF_ERROR(describe_steps(describer, model, message, run_calls));
  for (const BetweenSteps& between : options.between) {
    v1::HostStep& step = *message.add_host_steps();
    step.set_before(static_cast<std::uint32_t>(message.model_size()));
    step.set_every(between.every);
    step.mutable_node()->set_tier(v1::HOST_TIER_CAPTURED);
    step.mutable_node()->set_call(static_cast<std::uint32_t>(run_calls.size()));
    run_calls.push_back(between.call);
  }
  for (const auto& [group, policy] : options.dispatch) {
    v1::DispatchChoice& choice = *message.add_dispatch();
    choice.set_group(group);
    choice.set_policy(static_cast<v1::DispatchPolicy>(policy));
  }
  if (!options.record.planes.empty())
    EAGLE_RETURN_IF_ERROR(describe_record(describer, model, options.record, *message.mutable_record()));
  if (options.stop_steps)
    EAGLE_RETURN_IF_ERROR(
        describer.view(*options.stop_steps, true, "stop_steps", *message.mutable_stop_steps()));
  for (const auto& [name, array] : named) {
    v1::NamedView& view = *views->Add();
    view.set_name(name);
    EAGLE_RETURN_IF_ERROR(describer.view(array, false, "submit: " + quoted(name), *view.mutable_view()));
  }
  return describer.finish(message);
}

StatusOr<Backing> describe_arrays(const Host& host, const NamedArrays& arrays, v1::FetchRunRequest& message) {
  google::protobuf::RepeatedPtrField<v1::Kernel> none;
  Describer describer(host, none);
  for (const auto& [name, array] : arrays) {
    v1::NamedView& view = *message.add_into();
    view.set_name(name);
    EAGLE_RETURN_IF_ERROR(describer.view(array, true, "result: " + quoted(name), *view.mutable_view()));
  }
  return describer.finish(message);
}

}  // namespace eagle
