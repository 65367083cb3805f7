#include "engine/diff/needs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"
#include "engine/plane/torn_views.h"

namespace eagle::diff {
namespace {

using graph::NamedView;
using kernel::Role;
using plane::View;

class NeedsFinder {
public:
  NeedsFinder(const Program& program, const Activity& activity, const std::vector<ParamPlace>& params,
              Unknown unknown)
      : program_(program), activity_(activity), params_(params), unknown_(unknown) {
    needs_.launches.resize(program.count());
    needs_.kept.resize(program.count());
  }

  StatusOr<Needs> find() {
    EAGLE_RETURN_IF_ERROR(look(program_.steps()));
    decide_again();
    return std::move(needs_);
  }

private:
  Status look(std::span<const Step> steps) {
    for (const Step& step : steps) {
      EAGLE_RETURN_IF_ERROR(look(step.body));
      if (activity_.useful[step.number]) EAGLE_RETURN_IF_ERROR(look(step));
    }
    return {};
  }

  Status look(const Step& step) {
    if (step.as<graph::Conditional>() != nullptr) {
      std::set<std::size_t> state;
      const auto add = [&](const View& view, const Step& reader) {
        if (!program_.intact(view, reader)) state.insert(program_.block_of(view));
      };
      for (const NamedView& cell : step.reads) add(cell.view, step);
      Program::for_each(step.body, [&](const Step& inner) {
        for_each_reread(inner, [&](const View& view) { add(view, inner); });
      });
      for (const std::size_t block : state) keep(step, bytes_of(program_.blocks()[block]));
      return {};
    }
    if (const auto* const launch = step.as<graph::KernelLaunch>()) return look(step, *launch);
    if (!activity_.varied[step.number]) return {};
    if (const auto* const reduce = step.as<graph::Reduce>()) {
      if (reduce->op != kernel::ReduceOp::sum) keep(step, reduce->x.view);
    } else if (const auto* const copy = step.as<graph::Copy>()) {
      if (copy->index) keep(step, copy->index->view);
    } else if (step.as<graph::HostNode>() != nullptr) {
      for_each_reread(step, [&](const View& cursor) { keep(step, cursor); });
    }
    return {};
  }

  void keep(const Step& step, const View& view) {
    std::vector<View>& kept = needs_.kept[step.number];
    if (program_.intact(view, step) || plane::elements(view) == 0) return;
    if (std::find(kept.begin(), kept.end(), view) == kept.end()) kept.push_back(view);
  }

  [[nodiscard]] bool is_varied(const Step& step, const std::string& name) const {
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      if (step.reads[i].name == name && activity_.varied_reads[step.number][i]) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_useful(const Step& step, const std::string& name) const {
    for (std::size_t i = 0; i < step.writes.size(); ++i) {
      if (step.writes[i].name == name && activity_.useful_writes[step.number][i]) return true;
    }
    return false;
  }

  Status look(const Step& step, const graph::KernelLaunch& launch) {
    const kernel::Kernel& kernel = *program_.graph().kernels[launch.kernel];
    LaunchReverse& reverse = needs_.launches[step.number];
    const std::size_t count = kernel.arguments.size();
    reverse.wrt.resize(count);
    reverse.direct.resize(count);
    reverse.asked.resize(count);
    if (launch.samples == 0) return {};
    std::vector<const View*> bars(count);  // of arguments whose adjoint the derivative touches
    bool stores = false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Role role = kernel.arguments[i].role;
      if (role == Role::param) {
        reverse.wrt[i] =
            std::find(params_.begin(), params_.end(), ParamPlace{step.launch, i}) != params_.end();
        continue;
      }
      if (!kernel::is_real(kernel.arguments[i].type.scalar)) continue;
      const bool read = role == Role::read || role == Role::mutable_ || role == Role::table;
      reverse.wrt[i] = read && is_varied(step, kernel.arguments[i].name);
      if (reverse.wrt[i] || kernel::is_committed(role) || role == Role::accum)
        bars[i] = &*launch.arguments[i].view;
      if (kernel::is_committed(role)) reverse.asked[i] = is_useful(step, kernel.arguments[i].name);
      stores |= kernel::is_committed(role) && role != Role::reduce;
    }
    const int mask = kernel.terminated_argument();
    if (mask >= 0 && stores) keep(step, *launch.arguments[static_cast<std::size_t>(mask)].view);
    if (std::find(reverse.wrt.begin(), reverse.wrt.end(), true) == reverse.wrt.end()) return {};

    kernel::diff::Options options;
    options.sum_params = true;
    options.extremes = true;
    bool extremes = false;
    for (std::size_t i = 0; i < count; ++i) {
      extremes |= reverse.asked[i] && kernel::diff::is_extreme(kernel.arguments[i]);
      if (bars[i] != nullptr && kernel::is_committed(kernel.arguments[i].role) && !reverse.asked[i])
        options.unasked.push_back(kernel.arguments[i].name);
      if (!reverse.wrt[i]) continue;
      options.wrt.push_back(kernel.arguments[i].name);
      const Role role = kernel.arguments[i].role;
      if (role != Role::read && role != Role::table) continue;
      reverse.direct[i] = true;
      for (std::size_t other = 0; other < count; ++other) {
        if (other != i && bars[other] != nullptr && plane::overlap(*bars[other], *bars[i]).overlaps)
          reverse.direct[i] = false;
      }
      if (reverse.direct[i] && role == Role::read) options.accumulate.push_back(kernel.arguments[i].name);
    }
    EAGLE_RETURN_IF_ERROR(derive(step, launch.kernel, options, reverse));
    if (extremes) EAGLE_RETURN_IF_ERROR(find_terms(step, launch.kernel, reverse));
    for (std::size_t i = 0; i < count; ++i) {
      const bool unknown =
          reverse.derivative == nullptr &&
          (kernel::has_entry_value(kernel.arguments[i].role) || kernel.arguments[i].role == Role::table);
      const bool kept = unknown || needed(reverse.derivative, i) || needed(reverse.terms, i);
      if (kept && launch.arguments[i].view) keep(step, *launch.arguments[i].view);
    }
    return {};
  }

  static bool needed(const std::shared_ptr<const kernel::diff::Derivative>& derivative,
                     std::size_t argument) {
    return derivative != nullptr && std::any_of(derivative->planes.begin(), derivative->planes.end(),
                                                [&](const kernel::diff::Plane& plane) {
                                                  return plane.part == kernel::diff::Part::primal &&
                                                         plane.argument == argument && plane.needed;
                                                });
  }

  Status derive(const Step& step, std::uint32_t index, const kernel::diff::Options& options,
                LaunchReverse& reverse) {
    std::string key = std::to_string(index);
    for (const std::string& name : options.wrt) key += "," + name;
    key += ";";
    for (const std::string& name : options.accumulate) key += "," + name;
    key += ";";
    for (const std::string& name : options.unasked) key += "," + name;
    auto& known = derivatives_[key];
    if (known == nullptr) {
      StatusOr<kernel::diff::Derivative> made = kernel::diff::vjp(*program_.graph().kernels[index], options);
      if (!made.ok()) return refused(step, made.status());
      known = std::make_shared<const kernel::diff::Derivative>(*std::move(made));
    }
    reverse.derivative = known;
    return {};
  }

  Status find_terms(const Step& step, std::uint32_t index, LaunchReverse& reverse) {
    auto& known = terms_[index];
    if (known == nullptr) {
      StatusOr<kernel::diff::Derivative> made = kernel::diff::terms(*program_.graph().kernels[index]);
      if (!made.ok()) return refused(step, made.status());
      known = std::make_shared<const kernel::diff::Derivative>(*std::move(made));
    }
    reverse.terms = known;
    return {};
  }

  [[nodiscard]] Status refused(const Step& step, const Status& why) const {
    if (unknown_ == Unknown::taken_for_all) return {};
    return why.within("node " + std::to_string(step.leaf) + " " + kernel::quote_name(step.node->label));
  }

  // From the last step to the first: which blocks somebody later will look at as they are at this point.
  void decide_again() {
    const std::vector<Step>& steps = program_.steps();
    std::set<std::size_t> pending;
    needs_.again.resize(steps.size());
    for (std::size_t i = steps.size(); i-- > 0;) {
      const Step& step = steps[i];
      if (writes_any(step, pending)) {
        needs_.again[i] = true;
        drop_overwritten(step, pending);
        Program::for_each(std::span(&step, 1), [&](const Step& inner) {
          for_each_reread(inner, [&](const View& view) {
            if (!program_.intact(view, inner)) pending.insert(program_.block_of(view));
          });
        });
      }
      for (const View& view : needs_.kept[step.number]) pending.insert(program_.block_of(view));
    }
    for (const std::size_t block : pending) {
      if (!program_.is_scratch(block)) needs_.restored.insert(block);
    }
  }

  [[nodiscard]] bool writes_any(const Step& step, const std::set<std::size_t>& blocks) const {
    bool found = false;
    Program::for_each(std::span(&step, 1), [&](const Step& inner) {
      for (const NamedView& written : inner.writes) found |= blocks.contains(program_.block_of(written.view));
    });
    return found;
  }

  void drop_overwritten(const Step& step, std::set<std::size_t>& pending) const {
    if (step.as<graph::Conditional>() != nullptr) return;
    for (const NamedView& written : step.writes) {
      const std::size_t block = program_.block_of(written.view);
      const bool kept = std::any_of(step.reads.begin(), step.reads.end(), [&](const NamedView& read) {
        return read.name == written.name && read.view == written.view;
      });
      if (block == Program::no_block || kept) continue;
      if (plane::covers(written.view, bytes_of(program_.blocks()[block]))) pending.erase(block);
    }
  }

  const Program& program_;
  const Activity& activity_;
  const std::vector<ParamPlace>& params_;
  const Unknown unknown_;
  std::map<std::string, std::shared_ptr<const kernel::diff::Derivative>> derivatives_;
  std::map<std::uint32_t, std::shared_ptr<const kernel::diff::Derivative>> terms_;  // by kernel
  Needs needs_;
};

}  // namespace

StatusOr<Needs> find_needs(const Program& program, const Activity& activity,
                           const std::vector<ParamPlace>& params, Unknown unknown) {
  return NeedsFinder(program, activity, params, unknown).find();
}

void for_each_reread(const Step& step, const std::function<void(const View&)>& visit) {
  const bool host = step.as<graph::HostNode>() != nullptr;
  for (const NamedView& read : step.reads) {
    if (host && &read != &step.reads.back()) continue;  // the cursor comes last
    if (plane::elements(read.view) > 0) visit(read.view);
  }
}

View bytes_of(const Block& block) {
  return {block.plane, block.first, plane::DType::other, 1, {block.bytes()}, {1}};
}

}  // namespace eagle::diff
