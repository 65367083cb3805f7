#include "engine/run/fusion.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace eagle::run {
namespace {

using graph::SampleFunction;
using graph::SampleGroup;

// By plane of the graph: how many launches see it; `many` where something else does too.
class Users {
public:
  static constexpr std::size_t many = ~std::size_t{0};

  Users(const graph::Graph& graph, const graph::RunPlan& plan) : count_(graph.planes.size(), 0) {
    std::vector<const graph::KernelLaunch*> last(graph.planes.size(), nullptr);  // that sees the plane
    for (const graph::KernelLaunch* const launch : plan.launches) {
      for (const graph::Bound& bound : launch->arguments) {
        if (bound.view && std::exchange(last[bound.view->plane], launch) != launch)
          ++count_[bound.view->plane];
      }
    }
    for (const auto& reduce : plan.reductions) {
      count_[reduce->x.view.plane] = count_[reduce->out.view.plane] = many;
    }
    for (const auto& copy : plan.copies) {
      count_[copy->source.plane] = count_[copy->destination.plane] = many;
      if (copy->index) count_[copy->index->view.plane] = many;
    }
    for (const std::optional<plane::View>& counter : plan.counters) {
      if (counter) count_[counter->plane] = many;
    }
    for (const graph::Instruction& instruction : plan.program) {
      if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) add(skip->conditional->guard);
      if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) add(test->conditional->guard);
    }
  }

  [[nodiscard]] std::size_t of(std::uint32_t plane) const { return count_[plane]; }

  // Each plane once.
  static std::vector<std::uint32_t> planes_of(const graph::KernelLaunch& launch) {
    std::vector<std::uint32_t> planes;
    for (const graph::Bound& bound : launch.arguments) {
      if (bound.view) planes.push_back(bound.view->plane);
    }
    std::sort(planes.begin(), planes.end());
    planes.erase(std::unique(planes.begin(), planes.end()), planes.end());
    return planes;
  }

private:
  void add(const graph::Guard& guard) {
    count_[guard.count.view.plane] = many;
    if (guard.baseline) count_[guard.baseline->view.plane] = many;
  }

  std::vector<std::size_t> count_;
};

class Fusing {
public:
  Fusing(const graph::Graph& graph, const graph::RunPlan& plan, const graph::ScratchLayout& scratch,
         graph::Fusion fusion, FusedFunctions& functions, const Compile& compile)
      : graph_(graph), plan_(plan), users_(graph, plan), functions_(functions), compile_(compile) {
    out_.grouped = graph::group_samples(plan, fusion, graph::places_of(graph, scratch));
    out_.in_registers.assign(graph.planes.size(), false);
    for (const auto& kernel : plan.kernels) accesses_.push_back(kernel::accesses(*kernel));
  }

  StatusOr<FusedPlan> fuse() {
    for (SampleGroup& group : out_.grouped.groups) {
      std::vector<SampleFunction> functions = std::exchange(group.functions, {});
      std::vector<std::shared_ptr<const FusedCode>>& code = out_.code.emplace_back();
      group.functions.reserve(functions.size());
      code.reserve(functions.size());
      for (SampleFunction& function : functions) {
        take(std::move(function), group, code);
        if (!stopped_.ok()) return stopped_;
      }
    }
    return std::move(out_);
  }

private:
  void take(SampleFunction function, SampleGroup& group,
            std::vector<std::shared_ptr<const FusedCode>>& code) {
    if (function.launches.count > 1) {
      const std::vector<bool> dropped = dropped_places(function);
      if (auto fused = code_of(function, dropped)) {
        for (std::size_t place = 0; place < dropped.size(); ++place) {
          if (dropped[place]) out_.in_registers[function.planes[place]] = true;
        }
        group.functions.push_back(std::move(function));
        code.push_back(std::move(fused));
        return;
      }
    }
    for (std::uint32_t i = 0; i < function.launches.count; ++i) {
      group.functions.push_back({{function.launches.first + i, 1}, {}, {}});
      code.push_back(nullptr);
    }
  }

  [[nodiscard]] const graph::KernelLaunch& launch_of(const SampleFunction& function, std::size_t part) const {
    return *plan_.launches[function.launches.first + part];
  }

  // By place: whether it is of a scratch plane that only this function sees and no part reads before one has
  // written it.
  [[nodiscard]] std::vector<bool> dropped_places(const SampleFunction& function) const {
    std::map<std::uint32_t, std::size_t> users;  // by plane, among the parts
    std::vector<bool> written(function.planes.size(), false);
    std::map<std::uint32_t, bool> needed;  // by plane: something of it has to be in memory
    for (std::size_t p = 0; p < function.launches.count; ++p) {
      const graph::KernelLaunch& launch = launch_of(function, p);
      const std::vector<kernel::Access>& accesses = accesses_[launch.kernel];
      for (const std::uint32_t plane : Users::planes_of(launch)) ++users[plane];
      for (std::size_t a = 0; a < accesses.size(); ++a) {
        if (!launch.arguments[a].view) continue;
        const std::uint32_t place = function.places[p][a];
        if (accesses[a].used && !written[place]) needed[function.planes[place]] = true;
      }
      for (std::size_t a = 0; a < accesses.size(); ++a) {
        if (launch.arguments[a].view && accesses[a].written) written[function.places[p][a]] = true;
      }
    }
    std::vector<bool> dropped;
    for (const std::uint32_t plane : function.planes) {
      dropped.push_back(graph_.planes[plane].scratch && users[plane] == users_.of(plane) &&
                        !needed.contains(plane));
    }
    return dropped;
  }

  std::shared_ptr<const FusedCode> code_of(const SampleFunction& function, const std::vector<bool>& dropped) {
    FusedFunctions::Key key;
    for (std::size_t p = 0; p < function.launches.count; ++p) {
      key.push_back(launch_of(function, p).kernel);
      key.insert(key.end(), function.places[p].begin(), function.places[p].end());
    }
    key.insert(key.end(), dropped.begin(), dropped.end());
    const auto [at, fresh] = functions_.made.try_emplace(std::move(key));
    if (!fresh) return at->second;
    at->second = make(function, dropped);
    if (stopped_.ok()) return at->second;
    functions_.made.erase(at);  // it can be fused: nobody wanted to know
    return nullptr;
  }

  std::shared_ptr<const FusedCode> make(const SampleFunction& function, const std::vector<bool>& dropped) {
    std::vector<kernel::FusePart> parts;
    for (std::size_t p = 0; p < function.launches.count; ++p)
      parts.push_back({plan_.kernels[launch_of(function, p).kernel].get(), function.places[p]});
    StatusOr<kernel::Fused> fused = kernel::fuse(parts, dropped);
    if (!fused.ok()) return nullptr;
    StatusOr<codegen::Compiler::Compiled> compiled = compile_(fused->kernel);
    if (compiled.status().reason() == Reason::cancelled) stopped_ = compiled.status();
    if (!compiled.ok()) return nullptr;
    out_.compiled |= !compiled->hit;
    return std::make_shared<const FusedCode>(FusedCode{*std::move(fused), std::move(compiled->code)});
  }

  const graph::Graph& graph_;
  const graph::RunPlan& plan_;
  const Users users_;
  FusedFunctions& functions_;
  const Compile& compile_;
  std::vector<std::vector<kernel::Access>> accesses_;  // by kernel
  FusedPlan out_;
  Status stopped_;
};

}  // namespace

StatusOr<graph::Fusion> default_fusion() {
  const char* said = std::getenv("EAGLED_FUSION");
  const std::string_view value = said == nullptr ? "" : said;
  if (value.empty() || value == "full") return graph::Fusion::full;
  if (value == "blocks") return graph::Fusion::blocks;
  if (value == "off") return graph::Fusion::off;
  return Status(Reason::bad_value, "EAGLED_FUSION=" + std::string(value) +
                                       " is none of off, blocks and full; unset it for full");
}

StatusOr<FusedPlan> fuse_plan(const graph::Graph& graph, const graph::RunPlan& plan,
                              const graph::ScratchLayout& scratch, graph::Fusion fusion,
                              FusedFunctions& functions, const Compile& compile) {
  if (functions.made.size() > FusedFunctions::most) functions.made.clear();
  return Fusing(graph, plan, scratch, fusion, functions, compile).fuse();
}

}  // namespace eagle::run
